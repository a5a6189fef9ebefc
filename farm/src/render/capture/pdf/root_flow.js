// Returns `vertical` if the document has vertical lines that begin at the right, which the root or the body decides. If it begins
// at the right, the rules with which it begins at the left and its body keeps its direction and its place; otherwise nothing.
// With containment the document does not take the direction of its body.
function readRootFlow() {
  const { documentElement: root, body } = document;
  if (!root) return "";
  const styles = [root, body].filter((it) => it).map((it) => getComputedStyle(it));
  if (styles.some((it) => /-rl$/.test(it.writingMode))) return "vertical";
  if (styles[0].direction !== "rtl") return "";
  const is =
    (...values) =>
    (it) =>
      values.includes(`${body?.computedStyleMap().get(it)}`);
  const isAtRight =
    !["width", "max-width"].every(is("auto", "none")) && !["margin-left", "margin-right"].some(is("auto"));
  return `:root { direction: ltr !important; contain: style }
    :root > body { direction: ${styles[1]?.direction}; ${isAtRight ? "margin-left: auto !important" : ""} }`;
}
