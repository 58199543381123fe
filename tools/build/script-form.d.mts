import type { Form } from "../../src/redis/script.ts";

export function formOf(path: string, read: (path: string) => string): Form | null;
