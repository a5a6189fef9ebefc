// Evaluates the expression of `this`, an object of `page_expression.js`, unless its promise is still pending. Returns whether it
// was true, or the message of its error. No command waits for that promise: it may need the page's clock, which stands during
// commands. After five microtasks the value of an expression or function without a promise, or with a promise that is already
// settled, is known. Runs in the world of the page's scripts.
async function checkExpression() {
  if (!this.pending) this.run();
  for (let left = 5; left; left--) await null;
  if (!this.error) return { met: this.met };
  let message = "an error";
  try {
    message = `${this.error[0]?.message ?? this.error[0]}`;
  } catch {}
  return { message };
}
