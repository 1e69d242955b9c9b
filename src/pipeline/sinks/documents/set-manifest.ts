import { KOLLECT_API_VERSION } from '#kinds'
import { type Position, SinkError, type Writing } from '../sink.ts'
import { snapshotId } from './envelope.ts'

const KIND = 'KollectExportSetManifest'
/** The paths of some hundred thousand files. */
export const MAX_MANIFEST_BYTES = 32 * 2 ** 20
/** Places that an inventory may be on its way to. */
const MAX_PLACES = 20
/** Objects, lists and values: of others it takes a minute to read as many as there is room for. */
const MAX_MANIFEST_VALUES = 1_000_000

/** The list of what an inventory has in a sink: written last, so that a set that is named in it is whole. */
export interface SetManifest {
  readonly writing: Writing
  readonly position: Position
  readonly generation: number
  readonly exportedAt: string
  readonly complete: boolean
  /** of the content of the snapshot */
  readonly checksum: string
  /** of how it is laid out: equal content under another layout is written again */
  readonly layout: string
  /** who wrote it */
  readonly writer: string
  /** `namespace/name` of the sink that it was written through; absent: nobody says */
  readonly sink?: string
  /** lists of other places that it is moving to, or was when that was ended: its files may be there as well */
  readonly movedTo?: readonly string[]
  /** false: files that are written no more are kept */
  readonly prune?: boolean
  readonly partTotal: number
  /** every file of the inventory, in ascending order */
  readonly paths: readonly string[]
  /** Files of this inventory that belong to no set: written ahead of the next list, or to be deleted after this one. They may be there still. */
  readonly leftover?: readonly string[]
}

/** @throws SinkError terminal, where it would be more than is read */
export function manifestText({ writing, position, ...rest }: SetManifest): string {
  const {
    generation,
    exportedAt,
    complete,
    checksum,
    layout,
    writer,
    partTotal,
    paths,
    leftover = [],
    sink,
    prune,
    movedTo = [],
  } = rest
  const body = {
    kind: KIND,
    schemaVersion: KOLLECT_API_VERSION,
    cluster: writing.cluster,
    namespace: writing.namespace,
    name: writing.inventory,
    generation,
    partTotal,
    parts: Array.from({ length: partTotal }, (_, i) => i + 1),
    exportedAt,
    epoch: String(position.epoch),
    sequence: String(position.sequence),
    snapshotId: snapshotId(position),
    complete,
    checksum,
    layout,
    writer,
    ...(sink !== undefined && { sink }),
    ...(prune === false && { prune }),
    ...(movedTo.length > 0 && { movedTo }),
    paths,
    ...(leftover.length > 0 && { leftover }),
  }
  const text = `${JSON.stringify(body, null, 2)}\n`
  if (Buffer.byteLength(text) <= MAX_MANIFEST_BYTES && isModest(text)) return text
  throw new SinkError(
    'terminal',
    `the inventory has ${paths.length} files, more than the list of them has room for: write documents instead of a file for each row, or make several inventories of it`,
  )
}

/** Reads a manifest of ours; undefined for anything else, also for one that the original wrote, which has no order. */
export function parseManifest(text: string): SetManifest | undefined {
  const body = jsonOf(text)
  if (body?.kind !== KIND) return undefined
  const { cluster, namespace, name, generation, partTotal, exportedAt, complete, checksum, layout, writer, sink } = body
  const [paths, leftover] = [pathsOf(body.paths), pathsOf(body.leftover ?? [])]
  const movedTo = pathsOf(body.movedTo ?? [])?.slice(0, MAX_PLACES) ?? []
  const epoch = wholeNumber(body.epoch)
  const sequence = wholeNumber(body.sequence)
  const texts = [cluster, namespace, name, exportedAt, checksum, layout, writer]
  if (!texts.every((one) => typeof one === 'string') || epoch === undefined || sequence === undefined) return undefined
  if (!paths || !leftover) return undefined
  return {
    writing: { cluster: cluster as string, namespace: namespace as string, inventory: name as string },
    position: { epoch, sequence },
    generation: Number(generation) || 0,
    exportedAt: exportedAt as string,
    complete: complete === true,
    checksum: checksum as string,
    layout: layout as string,
    writer: writer as string,
    ...(typeof sink === 'string' && { sink }),
    ...(movedTo.length > 0 && { movedTo }),
    ...(body.prune === false && { prune: false }),
    partTotal: Number(partTotal) || 1,
    paths,
    ...(leftover.length > 0 && { leftover }),
  }
}

const pathsOf = (value: unknown): readonly string[] | undefined =>
  Array.isArray(value) && value.every((path) => typeof path === 'string' && isInside(path)) ? value : undefined

/** Whoever may write to the sink may have written the list: it leads nowhere else. */
export const isInside = (path: string): boolean =>
  path !== '' && !path.startsWith('/') && !path.includes('..') && !path.includes('\0')

const wholeNumber = (value: unknown): bigint | undefined =>
  typeof value === 'string' && /^\d{1,40}$/.test(value) ? BigInt(value) : undefined

/** Looks at what begins a value, and at no more of it than that. */
function isModest(text: string): boolean {
  let values = 0
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i)
    if ((code === COMMA || code === BRACKET || code === BRACE) && ++values > MAX_MANIFEST_VALUES) return false
  }
  return true
}
const [COMMA, BRACKET, BRACE] = [0x2c, 0x5b, 0x7b]

function jsonOf(text: string): Readonly<Record<string, unknown>> | undefined {
  if (!isModest(text)) return undefined
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null ? (value as Readonly<Record<string, unknown>>) : undefined
  } catch {
    return undefined
  }
}

export const isSameWriting = (a: Writing, b: Writing): boolean =>
  a.cluster === b.cluster && a.namespace === b.namespace && a.inventory === b.inventory
