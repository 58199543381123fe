/**
 * `HOLDFAST_TOPOLOGIES`: a regular expression for the names of the topologies to run; default: all.
 */
const WANTED = new RegExp(process.env.HOLDFAST_TOPOLOGIES ?? "");

export const isWanted = ({ name }: { readonly name: string }): boolean => WANTED.test(name);
