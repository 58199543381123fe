import { describeSeeds } from "./seeds.ts";

describeSeeds("with crashes, pauses, broken connections, late copies and steps of the clock", true);
