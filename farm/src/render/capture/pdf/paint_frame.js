// Gives all texts of a frame the colour of its element, if its owner cannot look into it. `frames` is what `colors.js` returns:
// colours by the places of frames.
function paintFrame(frames) {
  const path = (inner) => {
    if (inner === inner.parent) return "";
    const { parent } = inner;
    const all = Array.from({ length: parent.length }, (_, at) => parent[at]);
    return `${path(parent)}/${all.indexOf(inner)}`;
  };
  let place = path(window);
  while (place && !frames[place]) place = place.slice(0, place.lastIndexOf("/"));
  if (!place) return;
  const sheet = new CSSStyleSheet();
  sheet.replaceSync(`*, ::before, ::after { -webkit-text-fill-color: ${frames[place]} !important;
      print-color-adjust: exact !important;
      transition-duration: 0s !important; transition-delay: 0s !important }
    text, tspan { fill: ${frames[place]} !important }`);
  document.adoptedStyleSheets = [...document.adoptedStyleSheets, sheet];
}
