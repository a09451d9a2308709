// The epsilon slider of the page Compare. Every page works without this file.
"use strict";

const curve = document.getElementById("curve");
if (curve) {
  const range = document.getElementById("slider");
  const field = document.getElementById("epsilon");
  const told = document.getElementById("slider-told");
  const progress = document.getElementById("slider-progress");
  const pictures = document.getElementById("slider-pictures");
  const stops = curve.dataset.stops.split(" ");
  let asked = 0, shown = 0, again = 0;

  const say = (element, text) => { if (element.textContent !== text) element.textContent = text; };

  const look = async () => {
    const mine = ++asked;
    try {
      const answer = await fetch(`${curve.dataset.at}&epsilon=${stops[range.value]}`);
      const found = await answer.json();
      if (mine < shown) return;
      shown = mine;
      if (found.refused) { say(told, found.refused); return; }
      say(told, found.sentence);
      say(progress, found.progress);
      if (pictures.innerHTML !== found.pictures) pictures.innerHTML = found.pictures;
      clearTimeout(again);
      if (!found.ended) again = setTimeout(look, 1000);
    } catch {
      say(progress, "The studio does not answer. Is it still running?");
    }
  };

  const name = () => range.setAttribute("aria-valuetext", `epsilon ${stops[range.value]}`);
  range.parentElement.hidden = false;
  range.addEventListener("input", () => { name(); field.value = stops[range.value]; look(); });
  name();
  look();
}
