// Draws each sample and compares it with characters that no font has, which look like a missing character. Puts the indices of
// the missing ones into the title, which a PDF contains. Relies on a `<canvas>` of 60 × 60 pixels; the page has no other script.
function findMissingFonts(samples) {
  const context = document.querySelector("canvas").getContext("2d", { willReadFrequently: true });
  const draw = (text) => {
    context.clearRect(0, 0, 60, 60);
    context.font = "40px sans-serif";
    context.fillText(text, 5, 45);
    return context.getImageData(0, 0, 60, 60).data.join();
  };
  const missing = ["\u0378", "\u{10fffe}", " "].map(draw);
  const found = samples.flatMap((sample, index) => (missing.includes(draw(sample)) ? [index] : []));
  document.title = `missing:${found.join()};`;
}
