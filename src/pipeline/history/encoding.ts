import { FleetError, isClusterName, type MetricScope, type SampleGroup, type SampleSet } from '#model'

/*
 * A SampleSet as bytes for the hub's log:
 *
 *   version 1 | cluster | at (float64) | flags: 1 push, 2 repaired, 4 simulated | number of groups, then each
 *   group:   scope | number of keys, keys | number of columns, columns
 *   column:  metric: 0 and its name, or 1 + its place in the dictionary | packing | values
 *
 * Numbers are varints, texts a length and UTF-8, float64 little endian. A column is packed as whole numbers of its own
 * power of ten where that gives back each value to the bit; else as it is.
 */

/** Bytes that are no SampleSet, or a set too large to be one. */
export class InvalidSamplesError extends FleetError {
  override readonly name = 'InvalidSamplesError'
  readonly code = 'invalid_samples'
  readonly retryable = false

  constructor(reason: string) {
    super(`these are no samples: ${reason}`)
  }
}

const VERSION = 1
/** Values of one set: 64 MiB as float64. */
const MAX_VALUES = 8_000_000
const PACKING = { raw: 0, constant: 1, scaled: 2 } as const
const SCALES = [1, 10, 100, 1000, 10_000] as const
/** The zigzag code of a whole number below it, plus one for "unknown", is exact as a float64. */
const MAX_WHOLE = 2 ** 51

const scopes: readonly MetricScope[] = ['cluster', 'node', 'operator', 'clusterOperator', 'custom']

/** Part of the format: append only, never reorder. Names that are not here are written out. */
const dictionary: readonly string[] = [
  ...['nodes_total', 'nodes_ready', 'pods_total', 'pods_running', 'cpu_capacity', 'memory_capacity_bytes'],
  ...['namespaces_total', 'deployments_total', 'cpu_allocatable', 'cpu_requested', 'cpu_used'],
  ...['memory_allocatable_bytes', 'memory_requested_bytes', 'memory_used_bytes', 'pods_pending', 'pods_failed'],
  ...['deployments_ready', 'operators_total', 'operators_count'],
]
  .map((name) => `clusterpulse_cluster_${name}`)
  .concat(
    [
      ...['cpu_usage_percent', 'memory_usage_percent', 'pods_total', 'pods_running', 'cpu_capacity'],
      ...['memory_capacity_bytes', 'storage_capacity_bytes', 'pods_capacity', 'cpu_allocatable'],
      ...['memory_allocatable_bytes', 'storage_allocatable_bytes', 'pods_allocatable', 'cpu_requested'],
      ...['memory_requested_bytes', 'pods_pending', 'pods_failed', 'pods_succeeded', 'cpu_used', 'memory_used_bytes'],
      'ready',
    ].map((name) => `clusterpulse_node_${name}`),
    ['clusterpulse_operator_installed'],
    ['available', 'progressing', 'degraded', 'upgradeable'].map((name) => `clusterpulse_cluster_operator_${name}`),
  )
const placeOf: ReadonlyMap<string, number> = new Map(dictionary.map((name, place) => [name, place]))

/**
 * Compact bytes of a set: about 3 bytes per number of a usual node.
 * @throws InvalidSamplesError where a column is not as long as the keys, or the set is beyond 8 million values
 */
export function encodeSamples(set: SampleSet): Buffer {
  const writer = new Writer()
  writer.byte(VERSION)
  writer.text(set.cluster)
  writer.float(set.at)
  writer.byte((set.source === 'push' ? 1 : 0) | (set.repaired ? 2 : 0) | (set.simulated ? 4 : 0))
  writer.varint(set.groups.length)
  let total = 0
  for (const group of set.groups) {
    total += group.keys.length * group.columns.length
    if (total > MAX_VALUES) throw new InvalidSamplesError(`more than ${MAX_VALUES} values`)
    writeGroup(writer, group)
  }
  return writer.bytes()
}

function writeGroup(writer: Writer, group: SampleGroup): void {
  writer.byte(scopes.indexOf(group.scope))
  writer.varint(group.keys.length)
  for (const key of group.keys) writer.text(key)
  writer.varint(group.columns.length)
  for (const { metric, values } of group.columns) {
    if (values.length !== group.keys.length) throw new InvalidSamplesError(`${metric} has a value too many or too few`)
    const place = placeOf.get(metric)
    writer.varint(place === undefined ? 0 : place + 1)
    if (place === undefined) writer.text(metric)
    writeValues(writer, values)
  }
}

function writeValues(writer: Writer, values: Float64Array): void {
  if (values.length > 1 && isConstant(values)) {
    writer.byte(PACKING.constant)
    writeValues(writer, values.subarray(0, 1))
    return
  }
  const scale = scaleOf(values)
  const factor = SCALES[scale]
  if (factor === undefined) {
    writer.byte(PACKING.raw)
    for (const value of values) writer.float(value)
    return
  }
  writer.byte(PACKING.scaled + scale)
  for (let i = 0; i < values.length; i++) {
    const value = values[i] as number // below its length
    const whole = Math.round(value * factor)
    // 0 is "unknown", then zigzag: 1, 2, 3 … are 0, -1, 1 …
    writer.varint(Number.isNaN(value) ? 0 : whole >= 0 ? whole * 2 + 1 : -whole * 2)
  }
}

function isConstant(values: Float64Array): boolean {
  for (let i = 1; i < values.length; i++) if (!Object.is(values[i], values[0])) return false
  return true
}

/** The first scale by which all values are whole; the number of scales where there is none. */
function scaleOf(values: Float64Array): number {
  let scale = 0
  for (let i = 0; i < values.length && scale < SCALES.length; ) {
    if (isWhole(values[i] as number, SCALES[scale] as number)) i++
    else {
      // What was whole by a smaller factor may not be by a larger one.
      scale++
      i = 0
    }
  }
  return scale
}

// To the bit: a negative zero stays as it is, by the raw packing.
function isWhole(value: number, factor: number): boolean {
  if (Number.isNaN(value)) return true
  const whole = Math.round(value * factor)
  return Math.abs(whole) < MAX_WHOLE && !Object.is(whole, -0) && Object.is(whole / factor, value)
}

/**
 * The set again, to the bit (every NaN is one NaN).
 * @throws InvalidSamplesError on anything else, whatever the bytes
 */
export function decodeSamples(bytes: Uint8Array): SampleSet {
  const reader = new Reader(bytes)
  const version = reader.byte()
  if (version !== VERSION) throw new InvalidSamplesError(`version ${version} is not known`)
  const cluster = reader.text()
  if (!isClusterName(cluster)) throw new InvalidSamplesError('the cluster has no name')
  const at = reader.float()
  const flags = reader.byte()
  const groups: SampleGroup[] = []
  let total = 0
  for (let left = reader.count(); left > 0; left--) {
    const group = readGroup(reader, MAX_VALUES - total)
    total += group.keys.length * group.columns.length
    groups.push(group)
  }
  reader.end()
  return {
    cluster,
    at,
    source: flags & 1 ? 'push' : 'pull',
    repaired: (flags & 2) !== 0,
    ...(flags & 4 && { simulated: true }),
    groups,
  }
}

function readGroup(reader: Reader, maxValues: number): SampleGroup {
  const scope = scopes[reader.byte()]
  if (!scope) throw new InvalidSamplesError('a scope is not known')
  const keys = Array.from({ length: reader.count() }, () => reader.text())
  const count = reader.count()
  if (count * keys.length > maxValues) throw new InvalidSamplesError(`more than ${MAX_VALUES} values`)
  const columns = Array.from({ length: count }, () => {
    const place = reader.varint()
    const metric = place === 0 ? reader.text() : dictionary[place - 1]
    if (metric === undefined) throw new InvalidSamplesError('a metric is not in the dictionary')
    return { metric, values: readValues(reader, keys.length) }
  })
  return { scope, keys, columns }
}

function readValues(reader: Reader, length: number): Float64Array {
  const packing = reader.byte()
  if (packing === PACKING.constant) {
    // One level: the value itself is never told as a constant again.
    const inner = reader.byte()
    return new Float64Array(length).fill(readPacked(reader, inner, 1)[0] ?? 0)
  }
  return readPacked(reader, packing, length)
}

function readPacked(reader: Reader, packing: number, length: number): Float64Array {
  const factor = SCALES[packing - PACKING.scaled]
  if (packing !== PACKING.raw && factor === undefined) throw new InvalidSamplesError('a packing is not known')
  const values = new Float64Array(length)
  for (let i = 0; i < length; i++) {
    if (factor === undefined) {
      values[i] = reader.float()
      continue
    }
    const code = reader.varint()
    const whole = code % 2 === 1 ? (code - 1) / 2 : -code / 2
    values[i] = code === 0 ? Number.NaN : whole / factor
  }
  return values
}

class Writer {
  #buffer = Buffer.allocUnsafe(1024)
  #length = 0

  byte(value: number): void {
    this.#room(1)
    this.#buffer[this.#length++] = value
  }

  float(value: number): void {
    this.#room(8)
    this.#length = this.#buffer.writeDoubleLE(value, this.#length)
  }

  varint(value: number): void {
    this.#room(8)
    let rest = value
    if (rest < 2 ** 31) {
      for (; rest >= 128; rest >>>= 7) this.#buffer[this.#length++] = (rest & 127) | 128
      this.#buffer[this.#length++] = rest
      return
    }
    while (rest >= 128) {
      this.#buffer[this.#length++] = (rest % 128) | 128
      rest = Math.floor(rest / 128)
    }
    this.#buffer[this.#length++] = rest
  }

  text(value: string): void {
    const size = Buffer.byteLength(value)
    this.varint(size)
    this.#room(size)
    this.#length += this.#buffer.write(value, this.#length)
  }

  bytes(): Buffer {
    return Buffer.from(this.#buffer.subarray(0, this.#length))
  }

  #room(size: number): void {
    if (this.#length + size <= this.#buffer.length) return
    const larger = Buffer.allocUnsafe(Math.max(this.#buffer.length * 2, this.#length + size))
    this.#buffer.copy(larger, 0, 0, this.#length)
    this.#buffer = larger
  }
}

class Reader {
  readonly #buffer: Buffer
  #offset = 0

  constructor(bytes: Uint8Array) {
    this.#buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  }

  byte(): number {
    const value = this.#buffer[this.#offset++]
    if (value === undefined) throw new InvalidSamplesError('they end too early')
    return value
  }

  float(): number {
    const offset = this.#take(8)
    const value = this.#buffer.readDoubleLE(offset)
    return Number.isNaN(value) ? Number.NaN : value
  }

  varint(): number {
    let value = 0
    for (let factor = 1; factor < 2 ** 56; factor *= 128) {
      const byte = this.byte()
      value += (byte & 127) * factor
      if (byte < 128) {
        if (value > Number.MAX_SAFE_INTEGER) break
        return value
      }
    }
    throw new InvalidSamplesError('a number is too large')
  }

  /** of things that take at least a byte each: what cannot be there is not made room for */
  count(): number {
    const value = this.varint()
    if (value > this.#buffer.length - this.#offset) throw new InvalidSamplesError('they end too early')
    return value
  }

  text(): string {
    const size = this.varint()
    const offset = this.#take(size)
    return this.#buffer.toString('utf8', offset, offset + size)
  }

  end(): void {
    if (this.#offset !== this.#buffer.length) throw new InvalidSamplesError('more follows them')
  }

  #take(size: number): number {
    const offset = this.#offset
    if (offset + size > this.#buffer.length) throw new InvalidSamplesError('they end too early')
    this.#offset += size
    return offset
  }
}
