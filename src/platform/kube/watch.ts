import { backoffMs } from '#runtime'
import { acceptFor, asObject, parseJson, protobufReader, readJson } from './decode.ts'
import { describeCall, errorOfConnection, errorOfStatusObject, isKubeError, isUnanswered, KubeError } from './errors.ts'
import type { AnswerStream } from './http.ts'
import { listPages, listWhole } from './list.ts'
import { collectionPath, query } from './paths.ts'
import { isProtobuf, readResourceVersion, readStatus, readWatchFrame } from './protobuf.ts'
import type { Call, Transport } from './transport.ts'
import type { KubeObject, Resource, WatchEvent, WatchOptions } from './types.ts'
import { isComparable, isOlder } from './versions.ts'

/**
 * Servers send a bookmark about every minute, but not of what never changed since they started: silence beyond this is that of a dead
 * connection, or of a quiet resource.
 */
const INACTIVITY_MS = 80_000
/** The server ends a watch after a time between these: many watches of a fleet must not end together. */
const MIN_WATCH_S = 300
const MAX_WATCH_S = 600
/** A watch that ended sooner, without an event, was no healthy one. */
const TOO_SHORT_MS = 1000
/** So many times in a row a server that answers gave nothing from this version, and the version itself is suspect: list anew. */
const SUSPICIONS_BEFORE_RELIST = 4
/** A watch that is open and silent costs 80 s each time. */
const SILENCES_BEFORE_RELIST = 2
/** A watch of what is there says so within this time, or something on the way holds back what it says. */
const PROOF_MS = 10_000
const ANY_VERSION = '0'
const MAX_FRAME_BYTES = 32 * 1024 * 1024
const BACKOFF = { fromMs: 1000, toMs: 30_000 }
/** One that is away, or before which somebody says so, is followed again soon after it is back. */
const AWAY_TO_MS = 5000

export interface WatchSettings {
  readonly inactivityMs?: number | undefined
}

/** A watch that is taken, and of which nothing comes. */
class MuteWatch extends KubeError {
  constructor(resource: Resource<never> | Resource<unknown>) {
    const name = watchName(resource)
    super(
      'protocol',
      `${name}: nothing comes of it, not even of what is there; something on the way holds streams back`,
    )
  }
}

/**
 * List, then watch, until the signal ends it. Throws only when the client is closed; with `relist: false` also where it would list
 * anew, and where the watch is refused or what is watched is not there.
 *
 *   list ──► watch from its version ──clean end──► watch on from the last version seen, at once
 *    ▲            │         ▲──────reset, fault, silence: the same after a jittered pause, 1 s … 30 s; where nobody answered, or it was
 *    │            │                said that nobody does (502, 503), 1 s … 5 s; or less, as soon as another watch is answered
 *    └────────────┘ version gone (410, in the head or in the stream), gone back, or faults of a server that answers, without progress;
 *                   silence that a watch of one object that is there shares
 */
export async function* watchForever<T>(
  transport: Transport,
  resource: Resource<T>,
  options: WatchOptions & { signal: AbortSignal },
  settings: WatchSettings = {},
): AsyncGenerator<WatchEvent<T>, void, undefined> {
  const { signal, relist = true } = options
  let version = options.resourceVersion
  let faults = 0
  let suspicion = 0
  let wasAway = 0
  let mustProve = options.mustProve === true
  const trouble = async (error: Error, pause: boolean) => {
    options.onTrouble?.(error)
    if (!pause) return
    const isAway = isUnanswered(error)
    const away = isAway ? 2 : isSaidToBeAway(error) ? 1 : 0
    // What a server says that comes back is soon another: it does not serve all of its kinds yet.
    if (away < wasAway) faults = 0
    wasAway = away
    // Who says it may say as well how long it is going to be so.
    const askedMs = isSaidToBeAway(error) ? (error.retryAfterMs ?? 0) : 0
    const toMs = away > 0 && !options.pause ? Math.min(BACKOFF.toMs, Math.max(AWAY_TO_MS, askedMs)) : BACKOFF.toMs
    const ms = backoffMs(faults++, { ...BACKOFF, toMs, random: halfToWhole(transport.random) })
    if (options.pause) await options.pause(ms, signal)
    else if (isAway) await transport.rest(ms, signal)
    else await transport.clock.sleep(ms, signal)
  }
  /** @returns undefined where the server says by another way that the watch may go on from where it was */
  const silence = async (quiet: KubeError): Promise<Error | undefined> => {
    try {
      const { isCurrent, isMute } = await look(transport, resource, options, version ?? '')
      if (isMute) return new MuteWatch(resource)
      return isCurrent ? undefined : quiet
    } catch (error) {
      return asError(error)
    }
  }
  while (!signal.aborted) {
    transport.closed.throwIfAborted()
    if (version === undefined || suspicion >= 1) {
      try {
        const list = await listWhole(transport, resource, options)
        version = list.resourceVersion
        suspicion = 0
        yield { type: 'reset', ...list }
      } catch (error) {
        if (signal.aborted) return
        await trouble(asError(error), true)
        continue
      }
    }
    const openedAt = transport.clock.now()
    let isOpen = false
    let progress = false
    const onOpen = () => {
      isOpen = true
      options.onOpen?.()
    }
    try {
      if (mustProve && (await look(transport, resource, options, version)).isMute) throw new MuteWatch(resource)
      mustProve = false
      for await (const event of watchOnce(transport, resource, { ...options, version, onOpen }, settings)) {
        if (isOlder(event.version, version)) throw wentBack(resource, event.version, version)
        version = event.version || version
        progress = true
        faults = 0
        suspicion = 0
        if (event.event) yield event.event
      }
      const soon = !progress && transport.clock.now() - openedAt < TOO_SHORT_MS
      if (soon && !signal.aborted) throw new KubeError('protocol', `${watchName(resource)}: ended at once`)
    } catch (cause) {
      if (signal.aborted) return
      const error = isOpen && isKubeError(cause, 'timeout') ? await silence(cause) : asError(cause)
      if (!error) continue
      // One that was open for so long ended for reasons of its own, such as silence: what is begun anew need not wait long.
      if (isOpen && transport.clock.now() - openedAt >= BACKOFF.toMs) faults = 0
      if (!progress || error instanceof MuteWatch) suspicion += suspicionOf(error, isOpen)
      const isOver = isKubeError(error, 'expired')
      if (!relist && (isOver || suspicion >= 1 || isRefusal(error))) throw error
      await trouble(error, !isOver || faults > 0)
      if (!isOver) continue
      version = undefined
      faults++
    }
  }
}

interface Look {
  /** false where versions cannot be compared */
  readonly isCurrent: boolean
  /** a watch of an object that is there said nothing of it */
  readonly isMute: boolean
}

/**
 * Whether the server lives, has come at least as far as this version, and what its watches say arrives, which a watch that is silent does
 * not tell: from a version that is still to come it would be silent for good, and so it is where something on the way holds it back. One
 * object is read for it, and watched for a moment.
 * @throws KubeError `expired` where the versions went back; whatever a list may throw
 */
async function look(
  transport: Transport,
  { group, version: apiVersion, plural, kind, namespaced }: Resource<unknown>,
  options: WatchOptions & { readonly signal: AbortSignal },
  version: string,
): Promise<Look> {
  const resource: Resource = { group, version: apiVersion, plural, kind, namespaced }
  for await (const { items, resourceVersion } of listPages(transport, resource, { ...options, pageSize: 1 })) {
    if (isOlder(resourceVersion, version)) throw wentBack(resource, resourceVersion, version)
    const [one] = items
    const isMute = one !== undefined && !(await isTold(transport, resource, options, one))
    return { isCurrent: isComparable(resourceVersion) && isComparable(version), isMute }
  }
  return { isCurrent: false, isMute: false }
}

/** Whether a watch that begins anywhere says at once that an object is there. @see Kubernetes API concepts, "Semantics for watch" */
async function isTold(
  transport: Transport,
  resource: Resource,
  { namespace, signal }: WatchOptions & { readonly signal: AbortSignal },
  { metadata }: KubeObject,
): Promise<boolean> {
  const from = { ...(namespace !== undefined && { namespace }), signal, version: ANY_VERSION }
  const fieldSelector = `metadata.name=${metadata.name}`
  try {
    for await (const _ of watchOnce(transport, resource, { ...from, fieldSelector }, { inactivityMs: PROOF_MS }))
      return true
    return false
  } catch (error) {
    // Where it cannot be asked like that, nothing is known.
    return !isKubeError(error, 'timeout')
  }
}

/** How far a fault that brought nothing speaks against the version itself; at 1 it is not tried any more. A server that is away says nothing of it. */
function suspicionOf(error: Error, isOpen: boolean): number {
  if (error instanceof MuteWatch) return 1
  if (isKubeError(error, 'protocol')) return 1 / SUSPICIONS_BEFORE_RELIST
  if (isKubeError(error, 'timeout')) return isOpen ? 1 / SILENCES_BEFORE_RELIST : 0
  return isKubeError(error, 'server') && !isSaidToBeAway(error) ? 1 / SUSPICIONS_BEFORE_RELIST : 0
}

/** Whether what stands between us and a server says that it is away, or the server that it does not serve this yet. */
const isSaidToBeAway = (error: unknown): error is KubeError =>
  isKubeError(error, 'server') && [502, 503].includes(error.httpStatus ?? 0)

const isRefusal = (error: Error) =>
  isKubeError(error, 'forbidden') || isKubeError(error, 'not_found') || isKubeError(error, 'closed')

/** A store that was restored from a backup: what we know came later, or never was. */
function wentBack(resource: Resource<never> | Resource<unknown>, version: string, last: string): KubeError {
  return new KubeError('expired', `${watchName(resource)}: its version went back from ${last} to ${version}`)
}

/** Pauses of at least half the ceiling: a watch that fails is never repeated at once. */
function halfToWhole(random: () => number): () => number {
  return () => 0.5 + random() / 2
}

interface Seen<T> {
  readonly version: string
  /** absent for a bookmark */
  readonly event?: WatchEvent<T>
}

async function* watchOnce<T>(
  transport: Transport,
  resource: Resource<T>,
  options: WatchOptions & { signal: AbortSignal; version: string },
  settings: WatchSettings,
): AsyncGenerator<Seen<T>, void, undefined> {
  const end = new AbortController()
  const stop = () => end.abort(options.signal.reason)
  options.signal.addEventListener('abort', stop, { once: true })
  try {
    const { labelSelector, fieldSelector, version: resourceVersion } = options
    const timeoutSeconds = Math.round(MIN_WATCH_S + transport.random() * (MAX_WATCH_S - MIN_WATCH_S))
    const parameters = {
      watch: 1,
      // From any version some servers refuse to send them, as those with an older etcd.
      allowWatchBookmarks: resourceVersion === ANY_VERSION ? undefined : true,
      labelSelector,
      fieldSelector,
      resourceVersion,
      timeoutSeconds,
    }
    const call = {
      method: 'GET',
      path: collectionPath(resource, options.namespace) + query(parameters),
      accept: acceptFor(resource),
      signal: end.signal,
    }
    const answer = await transport.stream(call)
    options.onOpen?.()
    const frames = isProtobuf(answer.headers) ? lengthFrames : lineFrames
    const decode = isProtobuf(answer.headers) ? decodeProtobuf : decodeJson
    const watched = watchSilence(transport, answer.chunks, settings.inactivityMs ?? INACTIVITY_MS, end)
    for await (const frame of frames(watched)) yield decode(resource, call, frame)
  } catch (error) {
    throw errorOfConnection(watchName(resource), transport.endpoint, error)
  } finally {
    options.signal.removeEventListener('abort', stop)
    end.abort(new Error('the watch has ended'))
  }
}

function watchName(resource: Resource<never> | Resource<unknown>): string {
  return `watch of ${resource.plural}${resource.group ? `.${resource.group}` : ''}`
}

/** Passes chunks on; ends the connection when none comes for too long. */
async function* watchSilence(
  transport: Transport,
  chunks: AnswerStream['chunks'],
  inactivityMs: number,
  end: AbortController,
): AsyncGenerator<Buffer, void, undefined> {
  const over = new AbortController()
  let lastAt = transport.clock.now()
  // One timer looks from time to time, instead of one that is set anew with every chunk.
  const look = async () => {
    while (!over.signal.aborted) {
      const leftMs = lastAt + inactivityMs - transport.clock.now()
      if (leftMs <= 0) {
        end.abort(new KubeError('timeout', `no sign of life from ${transport.endpoint} for ${inactivityMs / 1000} s`))
        return
      }
      await transport.clock.sleep(leftMs, over.signal)
    }
  }
  const looking = look()
  try {
    for await (const chunk of chunks) {
      lastAt = transport.clock.now()
      yield chunk
      // The reader's own slowness is not the server's silence.
      lastAt = transport.clock.now()
    }
  } finally {
    over.abort()
    await looking
  }
}

/** JSON: one object per line. */
export async function* lineFrames(chunks: AsyncIterable<Buffer>): AsyncGenerator<Buffer, void, undefined> {
  let parts: Buffer[] = []
  let size = 0
  for await (const chunk of chunks) {
    let from = 0
    for (let at = chunk.indexOf(10); at >= 0; at = chunk.indexOf(10, from)) {
      parts.push(chunk.subarray(from, at))
      const line = parts.length === 1 && parts[0] ? parts[0] : Buffer.concat(parts)
      from = at + 1
      parts = []
      size = 0
      if (line.length > 0) yield line
    }
    parts.push(chunk.subarray(from))
    size += chunk.length - from
    if (size > MAX_FRAME_BYTES) throw tooLarge(size)
  }
  if (size > 0) throw new KubeError('unreachable', 'the stream ended in the middle of an event')
}

/** Protobuf: four bytes of length (big endian) before each event. */
export async function* lengthFrames(chunks: AsyncIterable<Buffer>): AsyncGenerator<Buffer, void, undefined> {
  let parts: Buffer[] = []
  let size = 0
  for await (const chunk of chunks) {
    parts.push(chunk)
    size += chunk.length
    // A large event comes in many chunks: they are joined once, when it is complete.
    let wanted = frameSize(parts)
    while (wanted !== undefined && size >= wanted) {
      const all = parts.length === 1 && parts[0] ? parts[0] : Buffer.concat(parts, size)
      yield all.subarray(4, wanted)
      const rest = all.subarray(wanted)
      parts = rest.length > 0 ? [rest] : []
      size = rest.length
      wanted = frameSize(parts)
    }
  }
  if (size > 0) throw new KubeError('unreachable', 'the stream ended in the middle of an event')
}

/** @returns the bytes of the first frame with its length, once that is known. */
function frameSize(parts: Buffer[]): number | undefined {
  let [head] = parts
  if (head === undefined) return undefined
  if (head.length < 4) {
    head = Buffer.concat(parts)
    parts.splice(0, parts.length, head)
    if (head.length < 4) return undefined
  }
  const size = head.readUInt32BE(0)
  if (size > MAX_FRAME_BYTES) throw tooLarge(size)
  return size + 4
}

function tooLarge(size: number): KubeError {
  return new KubeError('protocol', `an event of ${Math.round(size / 1024 / 1024)} MiB is too large`)
}

type Decode = <T>(resource: Resource<T>, call: Call, frame: Buffer) => Seen<T>

const decodeJson: Decode = (resource, call, frame) => {
  const { type, object } = (parseJson(call, frame) ?? {}) as { type?: unknown; object?: unknown }
  if (type === 'ERROR') throw errorOfStatusObject(describeCall(call.method, call.path), object)
  const whole = asObject(object, call)
  return seen(type, whole.metadata.resourceVersion ?? '', () => readJson(resource, whole))
}

const decodeProtobuf: Decode = (resource, call, frame) => {
  const { type, raw } = readWatchFrame(frame)
  if (type === 'ERROR') throw errorOfStatusObject(describeCall(call.method, call.path), readStatus(raw))
  return seen(type, readResourceVersion(raw), () => protobufReader(resource, call)(raw))
}

function seen<T>(type: unknown, version: string, read: () => T): Seen<T> {
  switch (type) {
    case 'ADDED':
      return { version, event: { type: 'added', object: read() } }
    case 'MODIFIED':
      return { version, event: { type: 'modified', object: read() } }
    case 'DELETED':
      return { version, event: { type: 'deleted', object: read() } }
    case 'BOOKMARK':
      return { version }
    default:
      throw new KubeError('protocol', `an event of the unknown type ${JSON.stringify(type)} came`)
  }
}

function asError(error: unknown): Error {
  return error instanceof Error ? error : new Error(String(error))
}
