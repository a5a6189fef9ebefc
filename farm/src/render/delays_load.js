// Returns whether a document delays the `load` of its page without a request: a script keeps it open (`document.open`), or it has
// media of a `data:` URL.
function delaysLoad() {
  const { readyState, querySelectorAll } = document;
  const isLoading = (media) => {
    const { networkState, readyState } = as(HTMLMediaElement, media);
    return networkState === 2 && readyState < 2;
  };
  return readyState !== "complete" || [...querySelectorAll("audio, video")].some(isLoading);
}
