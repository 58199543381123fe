/**
 * The folder of the package: src/, or the one above dist/. A bundle of an application has none of its
 * own, so there everything is inside. Null: the bundle is a CommonJS module, which has no URL.
 */
export const HOME = import.meta.url ? new URL("../", import.meta.url) : null;
