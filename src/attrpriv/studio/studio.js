// The epsilon slider. Every page works without this file.
"use strict";
