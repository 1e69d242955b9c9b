// CRC-32C (Castagnoli), reflected polynomial; eight tables so that a step takes eight bytes ("slicing by 8").
const POLYNOMIAL = 0x82f63b78

const tables: readonly Uint32Array[] = buildTables()

function buildTables(): Uint32Array[] {
  const first = new Uint32Array(256)
  for (let byte = 0; byte < 256; byte++) {
    let crc = byte
    for (let bit = 0; bit < 8; bit++) crc = crc & 1 ? (crc >>> 1) ^ POLYNOMIAL : crc >>> 1
    first[byte] = crc >>> 0
  }
  const all = [first]
  for (let k = 1; k < 8; k++) {
    const previous = all[k - 1] as Uint32Array
    all.push(previous.map((crc) => ((crc >>> 8) ^ (first[crc & 0xff] as number)) >>> 0))
  }
  return all
}

const [t0, t1, t2, t3, t4, t5, t6, t7] = tables as unknown as [
  Uint32Array,
  Uint32Array,
  Uint32Array,
  Uint32Array,
  Uint32Array,
  Uint32Array,
  Uint32Array,
  Uint32Array,
]

/**
 * CRC-32C of the bytes from `start` to `end`. `seed` is a former result to go on from, or a salt of one's own.
 * @see RFC 3720, appendix B.4, for the check values.
 */
export function crc32c(bytes: Uint8Array, seed = 0, start = 0, end = bytes.length): number {
  let crc = ~seed
  let i = start
  // Indices are below `end` and below 256: the casts only drop the "or undefined" of unchecked access.
  for (; i + 8 <= end; i += 8) {
    crc ^=
      (bytes[i] as number) |
      ((bytes[i + 1] as number) << 8) |
      ((bytes[i + 2] as number) << 16) |
      ((bytes[i + 3] as number) << 24)
    crc =
      (t7[crc & 0xff] as number) ^
      (t6[(crc >>> 8) & 0xff] as number) ^
      (t5[(crc >>> 16) & 0xff] as number) ^
      (t4[crc >>> 24] as number) ^
      (t3[bytes[i + 4] as number] as number) ^
      (t2[bytes[i + 5] as number] as number) ^
      (t1[bytes[i + 6] as number] as number) ^
      (t0[bytes[i + 7] as number] as number)
  }
  for (; i < end; i++) crc = (crc >>> 8) ^ (t0[(crc ^ (bytes[i] as number)) & 0xff] as number)
  return ~crc >>> 0
}
