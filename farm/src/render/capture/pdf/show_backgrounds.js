// Shows the backgrounds that a PDF without backgrounds needs: those that text shows (`background-clip: text`), which is mostly
// transparent, and the controls of video and audio, whose icons are backgrounds. The elements print them, but not their
// children, which would inherit that.
function showBackgrounds() {
  const set = (value) => (element) =>
    element instanceof HTMLElement &&
    as(HTMLElement, element).style.setProperty("print-color-adjust", value, "important");
  const needed = Array.from(document.querySelectorAll("*")).filter(
    (element) =>
      getComputedStyle(element).backgroundClip.includes("text") ||
      (element instanceof HTMLMediaElement && element.controls),
  );
  const others = needed
    .flatMap((element) => Array.from(as(Element, element).children))
    .filter((child) => getComputedStyle(child).printColorAdjust !== "exact" && !needed.includes(child));
  needed.forEach(set("exact"));
  others.forEach(set("economy"));
}
