/*
 * The hub we are compared with (writes-all.ts) is a stand-in for the original and slower than it. What the original itself did
 * was measured apart, once, on two calm cores with TLS and the same kind of Redis; what the stand-in is to it follows from the
 * stand-in's published row of the same streams and nodes. A ratio to the stand-in of one run, divided by this, is one to the
 * original: as far as machine and load act alike on both.
 */

/** CPU is of hub and Redis, per batch. */
export const ORIGINAL = { streams: 500, nodes: 50, batchesPerSecond: 492, cpuUs: 3_500, rssMb: 279 }
/** The published row that the factors are made of. */
export const STAND_IN = { batchesPerSecond: 318, cpuUs: 3_889 + 473, rssMb: 437 }
/** By how much the original is better than the stand-in. */
export const FACTOR = {
  rate: ORIGINAL.batchesPerSecond / STAND_IN.batchesPerSecond,
  cpu: STAND_IN.cpuUs / ORIGINAL.cpuUs,
}
/** The original by itself, ours (original protocol, with history) beside it in that measurement. */
export const BESIDE = [
  { load: '200 × 50', original: '612–666/s, 2.7 ms, 168 MB', ours: '723–891/s, 1.9–2.3 ms, 0.9 GB' },
  { load: '500 × 50', original: '492/s, 3.5 ms, 279 MB', ours: '840/s, 2.2 ms, 1.2 GB' },
] as const
