// Returns an object that evaluates the expression for which a job waits, once at a time. Runs in the world of the page's scripts,
// which can change what it does, and so only what their own file shows.
function keepExpression(evaluate) {
  return {
    pending: false,
    met: false,
    error: null,
    async run() {
      this.pending = true;
      try {
        let value = await evaluate();
        if (typeof value === "function") value = await value();
        this.met = !!value;
      } catch (error) {
        this.error = [error];
      }
      this.pending = false;
    },
  };
}
