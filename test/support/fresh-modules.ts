import { vi } from "vitest";

// Before each test file: it shares its process with others, and not the modules that they have
// changed. Each set of modules hears the end of the process.

vi.unmock("../../src/defaults.ts");
vi.resetModules();
process.setMaxListeners(100);
