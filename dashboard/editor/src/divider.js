// The divider between the form and the panes beside it. Its place is kept in the browser.
import { stored } from "./storage.js";

const KEY = "divider";
const [FIRST, LAST, STEP] = [25, 75, 5];

export function addDivider(editor) {
  const divider = document.createElement("div");
  divider.className = "divider";
  divider.tabIndex = 0;
  for (const [name, value] of [
    ["role", "separator"],
    ["aria-orientation", "vertical"],
    ["aria-label", "Width of the form in percent"],
    ["aria-valuemin", FIRST],
    ["aria-valuemax", LAST],
  ]) {
    divider.setAttribute(name, value);
  }
  let share = 50;
  function set(percent) {
    share = Math.min(Math.max(Math.round(percent), FIRST), LAST);
    divider.setAttribute("aria-valuenow", share);
    editor.style.setProperty("--form", `${share}fr`);
    editor.style.setProperty("--panes", `${100 - share}fr`);
    stored((storage) => storage.setItem(KEY, share));
  }
  divider.addEventListener("pointerdown", (event) => {
    if (event.button === 0) divider.setPointerCapture(event.pointerId);
  });
  divider.addEventListener("pointermove", (event) => {
    if (!divider.hasPointerCapture(event.pointerId)) return;
    const { left, width } = editor.getBoundingClientRect();
    set(((event.clientX - left) / width) * 100);
  });
  divider.addEventListener("dblclick", () => set(50));
  divider.addEventListener("keydown", (event) => {
    const to = { ArrowLeft: share - STEP, ArrowRight: share + STEP, Home: FIRST, End: LAST }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    set(to);
  });
  set(Number(stored((storage) => storage.getItem(KEY))) || share);
  editor.querySelector(".side").before(divider);
}
