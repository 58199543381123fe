/**
 * The folder of the package: src/, or the one above dist/. A bundle of an application has none of its
 * own, so there everything is inside.
 */
export const HOME = new URL("../", import.meta.url);
