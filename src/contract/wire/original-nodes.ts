import { fromBinary } from '@bufbuild/protobuf'
import type { NodeSnapshot } from '#model'
import {
  ConnectRequestSchema,
  type MetricsBatch,
  MetricsBatchSchema,
} from './generated/clusterpulse/collector/v1/collector_pb.ts'
import { amount, statusOf } from './original.ts'
import { isRegular } from './regular.ts'
import { checkWeight } from './weight.ts'

/*
 * A collector of the original tells every node whole in every batch, and from one batch to the next hardly anything of a node
 * moves. So its nodes are read from the bytes into what is kept, and what says the same as before is the very object or text
 * of before: nothing is made that is thrown away, and whoever compares later finds one and the same.
 *
 * Only what every collector writes is read here. Anything unusual in the bytes (a wrong wire type, a text beyond ASCII, a
 * number that is none, fields in another order) is left to the general decoder, which alone decides what is malformed.
 */

/** What a message says that is nothing but a batch of the original. */
export interface ReadOriginal {
  /** all of it but the nodes: `nodeMetrics` is empty */
  readonly metrics: MetricsBatch
  /** in the order told, each name once */
  readonly nodes: readonly NodeSnapshot[]
}

/**
 * The batch of the original in the bytes of a request.
 * @param known of a batch before, by this function or batchFromOriginal: what did not change is shared with it
 * @returns undefined where decodeRequest must look at it
 */
export function readOriginal(bytes: Uint8Array, known: readonly NodeSnapshot[] = []): ReadOriginal | undefined {
  const from = new Cursor(bytes)
  try {
    // A metrics field and nothing behind it: of two, fields would be merged.
    if (from.byte() !== METRICS || !from.enter() || from.end !== bytes.length) return undefined
    checkWeight(ConnectRequestSchema, bytes)
    return readBatch(from, known)
  } catch {
    return undefined // the general decoder says what is wrong
  }
}

const METRICS = 0x0a
const NODE = 0x2a

function readBatch(from: Cursor, known: readonly NodeSnapshot[]): ReadOriginal | undefined {
  const { bytes, end } = from
  const nodes: NodeSnapshot[] = []
  const rest: Uint8Array[] = []
  const byName = new Names(known)
  let restFrom = from.at
  while (from.at < end) {
    const start = from.at
    if (bytes[start] !== NODE) {
      const tag = from.tag()
      if (tag >>> 3 === NODE >>> 3 || !from.skipOf(tag & 7)) return undefined
      continue
    }
    if (start > restFrom) rest.push(bytes.subarray(restFrom, start))
    from.at++
    if (!from.enter()) return undefined
    const node = readNode(from, byName, nodes.length)
    if (!node) return undefined
    nodes.push(node)
    from.leave(end)
    restFrom = from.at
  }
  if (end > restFrom) rest.push(bytes.subarray(restFrom, end))
  if (from.at !== end || !areDistinct(nodes, known)) return undefined
  const others = joined(rest)
  if (!isRegular(MetricsBatchSchema, others)) return undefined
  const metrics = fromBinary(MetricsBatchSchema, others, { readUnknownFields: false })
  return { metrics, nodes }
}

/** The nodes of before, at the same place mostly. */
class Names {
  readonly #known: readonly NodeSnapshot[]
  #all: ReadonlyMap<string, NodeSnapshot> | undefined

  constructor(known: readonly NodeSnapshot[]) {
    this.#known = known
  }

  find(from: Cursor, start: number, end: number, place: number): NodeSnapshot | undefined {
    const here = this.#known[place]
    if (here && from.is(here.name, start, end)) return here
    if (this.#known.length === 0) return undefined
    this.#all ??= new Map(this.#known.map((node) => [node.name, node]))
    return this.#all.get(from.text(start, end))
  }
}

function areDistinct(nodes: readonly NodeSnapshot[], known: readonly NodeSnapshot[]): boolean {
  // The names of before were distinct.
  if (nodes.length === known.length && nodes.every(({ name }, i) => name === known[i]?.name)) return true
  return new Set(nodes.map(({ name }) => name)).size === nodes.length
}

function joined(parts: readonly Uint8Array[]): Uint8Array {
  const [first, ...more] = parts
  return more.length === 0 ? (first ?? new Uint8Array()) : Buffer.concat(parts)
}

// Fields of NodeMetrics by their numbers in the protocol.
const DOUBLE = 1
const INTEGER = 0
const TEXT = 2
const FIRST_TEXT = 30
const TEXTS = 8
const LABELS = 35
const numberTypes = new Map<number, number>([
  ...[10, 14, 18, 20, 21].map((field) => [field, DOUBLE] as const),
  ...[11, 12, 13, 15, 16, 17, 19, 22, 23, 24, 25, 26].map((field) => [field, INTEGER] as const),
])
const typeOf = Array.from({ length: 27 }, (_, field) => numberTypes.get(field) ?? -1)

/** Filled anew for every node; nothing waits in between. */
const numbers = new Float64Array(27)
const texts: string[] = new Array(TEXTS)
const LARGEST_INT32 = 2 ** 31 - 1
const isInt32 = (field: number): boolean => field === 13 || field === 17 || field >= 22

/** undefined: not as every collector writes it */
function readNode(from: Cursor, names: Names, place: number): NodeSnapshot | undefined {
  if (from.byte() !== NAME) return undefined
  const end = from.end
  if (!from.enter() || from.end === from.at) return undefined
  const known = names.find(from, from.at, from.end, place)
  const name = known?.name ?? from.text(from.at, from.end)
  from.leave(end)
  numbers.fill(0)
  texts.fill('')
  let status = ''
  const roles: string[] = []
  const labels = new Labels(from, known?.labels ?? NONE)
  while (from.at < end) {
    const tag = from.tag()
    const field = tag >>> 3
    const wireType = tag & 7
    if (wireType === TEXT && (field === 2 || field === 3 || isText(field))) {
      if (!from.enter()) return undefined
      if (field === LABELS) {
        if (!labels.take()) return undefined
      } else if (field === 2) status = from.shared(known ? shownStatus(known) : 'Ready')
      else if (field === 3) roles.push(from.shared(known?.roles[roles.length]))
      else texts[field - FIRST_TEXT] = from.shared(known && textOf(known, field))
      from.leave(end)
    } else if (field < typeOf.length && typeOf[field] === wireType) {
      const value = wireType === DOUBLE ? from.double() : from.varint()
      // What is negative is told in ten bytes.
      if (wireType === INTEGER && isInt32(field) && value > LARGEST_INT32) return undefined
      numbers[field] = value
    } else if (field <= 3 || (typeOf[field] ?? -1) >= 0 || isText(field)) {
      return undefined // a name told twice, or another type than it has
    } else if (!from.skipOf(wireType)) return undefined // of a newer collector
  }
  if (from.at !== end) return undefined
  return made(name, status, roles, labels.done(), known)
}

const NAME = 0x0a
/** Which labels of before came again; filled anew for every node. */
const seen: boolean[] = []
const NONE: Readonly<Record<string, string>> = {}
const isText = (field: number): boolean => field >= FIRST_TEXT && field < FIRST_TEXT + TEXTS

function shownStatus({ ready, unschedulable }: NodeSnapshot): string {
  if (unschedulable) return 'SchedulingDisabled'
  return ready === 'ready' ? 'Ready' : 'NotReady'
}

function textOf(node: NodeSnapshot, field: number): string {
  switch (field) {
    case 30:
      return node.kernelVersion
    case 31:
      return node.osImage
    case 32:
      return node.containerRuntime
    case 33:
      return node.kubeletVersion
    case 34:
      return node.architecture
    case 36:
      return node.internalIp
    default:
      return node.hostname
  }
}

function made(
  name: string,
  status: string,
  names: string[],
  labels: NodeSnapshot['labels'],
  known: NodeSnapshot | undefined,
): NodeSnapshot | undefined {
  const cpu = numbers[18]!
  const memory = numbers[19]!
  // To be refused, with its name and the reason.
  if (!(Number.isFinite(cpu) && cpu >= 0)) return undefined
  const running = numbers[22]!
  const pending = numbers[23]!
  const failed = numbers[24]!
  const succeeded = numbers[25]!
  const total = numbers[26]!
  const sorted = names.length > 1 ? [...names].sort() : names
  const roles = known && sameTexts(known.roles, sorted) ? known.roles : sorted
  const capacity = amounts(10, known?.capacity)
  const allocatable = amounts(14, known?.allocatable)
  const requested =
    known?.requested && known.requested.cpuCores === cpu && known.requested.memoryBytes === memory
      ? known.requested
      : { cpuCores: cpu, memoryBytes: memory }
  const before = known?.pods
  const pods =
    before &&
    before.total === total &&
    before.running === running &&
    before.pending === pending &&
    before.failed === failed &&
    before.succeeded === succeeded
      ? before
      : {
          total,
          running,
          pending,
          failed,
          succeeded,
          unknown: Math.max(0, total - running - pending - failed - succeeded),
        }
  const { ready, unschedulable } = statusOf(status)
  const isSame =
    known &&
    known.ready === ready &&
    known.unschedulable === unschedulable &&
    known.roles === roles &&
    known.capacity === capacity &&
    known.allocatable === allocatable &&
    known.requested === requested &&
    known.pods === pods &&
    known.labels === labels &&
    known.kernelVersion === texts[0] &&
    known.osImage === texts[1] &&
    known.containerRuntime === texts[2] &&
    known.kubeletVersion === texts[3] &&
    known.architecture === texts[4] &&
    known.internalIp === texts[6] &&
    known.hostname === texts[7]
  if (isSame) return known
  return {
    name,
    createdAt: null,
    ready,
    unschedulable,
    roles,
    conditions: known?.conditions ?? [],
    capacity,
    allocatable,
    requested,
    used: null,
    pods,
    kernelVersion: texts[0]!,
    osImage: texts[1]!,
    containerRuntime: texts[2]!,
    kubeletVersion: texts[3]!,
    architecture: texts[4]!,
    internalIp: texts[6]!,
    externalIp: '',
    hostname: texts[7]!,
    labels,
    annotations: known?.annotations ?? {},
    taints: known?.taints ?? [],
    imagesCount: 0,
    volumesAttached: 0,
  }
}

type Amounts = NodeSnapshot['capacity']

/** Of four fields in a row: cores, bytes, bytes of storage, pods. */
function amounts(first: number, known: Amounts | undefined): Amounts {
  const cpuCores = amount(numbers[first]!)
  const memoryBytes = amount(numbers[first + 1]!)
  const storageBytes = amount(numbers[first + 2]!)
  const pods = amount(numbers[first + 3]!)
  const isSame =
    known &&
    known.cpuCores === cpuCores &&
    known.memoryBytes === memoryBytes &&
    known.storageBytes === storageBytes &&
    known.pods === pods
  return isSame ? known : { cpuCores, memoryBytes, storageBytes, pods }
}

const sameTexts = (a: readonly string[], b: readonly string[]): boolean =>
  a.length === b.length && a.every((text, i) => text === b[i])

/**
 * The labels of one node. Collectors tell them in any order: as long as each is one of before, and none comes twice, nothing
 * is made.
 */
class Labels {
  readonly #from: Cursor
  readonly #known: Readonly<Record<string, string>>
  readonly #keys: readonly string[]
  #count = 0
  #made: Record<string, string> | undefined

  constructor(from: Cursor, known: Readonly<Record<string, string>>) {
    this.#from = from
    this.#known = known
    this.#keys = Object.keys(known)
    seen.fill(false, 0, this.#keys.length)
  }

  /** @returns false: not as every collector writes it */
  take(): boolean {
    const from = this.#from
    const end = from.end
    if (from.byte() !== 0x0a || !from.enter()) return false
    const [keyFrom, keyEnd] = [from.at, from.end]
    from.leave(end)
    if (from.byte() !== 0x12 || !from.enter() || from.end !== end) return false
    const [valueFrom, valueEnd] = [from.at, from.end]
    if (!this.#made && this.#isKnown(keyFrom, keyEnd, valueFrom, valueEnd)) return true
    this.#made ??= this.#soFar()
    const key = from.text(keyFrom, keyEnd)
    // It would not become a field of its own.
    if (key === '__proto__') return false
    this.#made[key] = from.text(valueFrom, valueEnd)
    return true
  }

  done(): Readonly<Record<string, string>> {
    if (this.#made) return this.#made
    if (this.#count === this.#keys.length) return this.#count === 0 && this.#known === NONE ? {} : this.#known
    return this.#soFar()
  }

  #isKnown(keyFrom: number, keyEnd: number, valueFrom: number, valueEnd: number): boolean {
    const keys = this.#keys
    for (let i = 0; i < keys.length; i++) {
      const at = (this.#count + i) % keys.length
      const key = keys[at]!
      if (!this.#from.is(key, keyFrom, keyEnd)) continue
      if (seen[at] || !this.#from.is(this.#known[key]!, valueFrom, valueEnd)) return false
      seen[at] = true
      this.#count++
      return true
    }
    return false
  }

  #soFar(): Record<string, string> {
    const labels: Record<string, string> = {}
    for (const [i, key] of this.#keys.entries()) if (seen[i]) labels[key] = this.#known[key]!
    return labels
  }
}

class Unusual extends Error {}

/** Reads what lies between `at` and `end`; throws Unusual where that is not enough. */
class Cursor {
  readonly bytes: Uint8Array
  readonly #view: DataView
  readonly #buffer: Buffer
  at = 0
  end: number

  constructor(bytes: Uint8Array) {
    this.bytes = bytes
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    this.#buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    this.end = bytes.length
  }

  byte(): number {
    return this.at < this.end ? this.bytes[this.at++]! : -1
  }

  /** A whole number below 2^53. */
  varint(): number {
    let value = 0
    let scale = 1
    for (let i = 0; i < 8; i++) {
      const byte = this.byte()
      if (byte < 0) throw new Unusual()
      value += (byte & 0x7f) * scale
      if (byte < 0x80) {
        if (value > Number.MAX_SAFE_INTEGER) throw new Unusual()
        return value
      }
      scale *= 0x80
    }
    throw new Unusual()
  }

  double(): number {
    if (this.end - this.at < 8) throw new Unusual()
    this.at += 8
    return this.#view.getFloat64(this.at - 8, true)
  }

  /** Into what the length in front says. @returns false where there is less */
  enter(): boolean {
    const size = this.varint()
    if (size > this.end - this.at) return false
    this.end = this.at + size
    return true
  }

  /** Behind what was entered. */
  leave(end: number): void {
    this.at = this.end
    this.end = end
  }

  tag(): number {
    const tag = this.varint()
    if (tag < 8 || tag > 0xffffffff) throw new Unusual()
    return tag
  }

  /** @returns false where there is less, or what no collector writes */
  skipOf(wireType: number): boolean {
    if (wireType === 0) this.varint()
    else if (wireType === 1) this.at += 8
    else if (wireType === 5) this.at += 4
    else if (wireType === 2) {
      const end = this.end
      if (!this.enter()) return false
      this.leave(end)
    } else return false
    return this.at <= this.end
  }

  is(text: string, start: number, end: number): boolean {
    if (text.length !== end - start) return false
    const { bytes } = this
    for (let i = 0; i < text.length; i++) if (text.charCodeAt(i) !== bytes[start + i]) return false
    return true
  }

  /** What was entered; `known` itself where it says the same. */
  shared(known: string | undefined): string {
    return known !== undefined && this.is(known, this.at, this.end) ? known : this.text(this.at, this.end)
  }

  text(start: number, end: number): string {
    for (let i = start; i < end; i++) if (this.bytes[i]! >= 0x80) throw new Unusual()
    return this.#buffer.toString('latin1', start, end)
  }
}
