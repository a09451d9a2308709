"""The screens, one module each: `show` says what is on it, `act` does what a form of it asks for."""
