// What every script in the isolated world begins with. It bounds what a page can change under the scripts (tests/farm/names.rs).
//
// Scripts of the page reach neither the global object of this world nor its prototypes. Both worlds have the same elements, and
// markup names some of them in three ways:
// - A document has members by the `name` or `id` of elements, in place of its own. So `document` is not the document itself here.
// - A form has members by the `name` or `id` of its controls, in place of its own. So members of any element are taken by `as`.
// - A window has variables by the `id` or `name` of elements, if they are not defined. So scripts use no others, which the linter
//   checks (`noUndeclaredVariables`). Names of elements are strings, never symbols.

// The members of an interface, as they are on the object.
const as = ({ prototype }, object) =>
  new Proxy(prototype, {
    get: (_, name) => {
      const member = Reflect.get(prototype, name, object);
      return typeof member === "function" ? member.bind(object) : member;
    },
    set: (_, name, value) => Reflect.set(prototype, name, value, object),
  });

// The members of the document. Where a node is needed, it is `window.document`.
const document = as(Document, window.document);

// What later scripts of the farm need in this document.
window[Symbol.for("platen")] ??= {};
const own = window[Symbol.for("platen")];
