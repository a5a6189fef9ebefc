// Gives elements the heights in `own.heights`, if they have others now and the condition is true for them.
function fixHeights(condition) {
  const isChanged = ({ element, height }) =>
    element instanceof HTMLElement && getComputedStyle(element).height !== height && condition(element);
  for (const { element, height } of own.heights.filter(isChanged)) {
    for (const name of ["height", "min-height", "max-height"])
      as(HTMLElement, element).style.setProperty(name, height, "important");
  }
}
