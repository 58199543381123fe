/** `HOLDFAST_TOPOLOGIES`: a regular expression for the names of those to run over; all when left out. */
const WANTED = new RegExp(process.env.HOLDFAST_TOPOLOGIES ?? "");

export const isWanted = ({ name }: { readonly name: string }): boolean => WANTED.test(name);
