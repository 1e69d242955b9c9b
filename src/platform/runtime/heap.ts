import { setFlagsFromString } from 'node:v8'

/**
 * Lets the heap grow to 1.4 times of what lives, and no further, before all of it is cleaned. Left alone, V8 lets a heap
 * of this size and pace grow to three times of that on a large machine. For a process that runs long and holds much, once, at
 * its start. Measured with 1000 clusters: 560 MB instead of 860 MB, for a tenth more CPU.
 */
export function keepHeapTight(): void {
  setFlagsFromString('--heap-growing-percent=40')
}
