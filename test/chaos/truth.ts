/** The one number a chaos agent collects, by the time it was true: whoever mixes up value and time is found. Exact in any store. */
export const valueAt = (ms: number): number => (ms % 1_000_000_000) + 1
