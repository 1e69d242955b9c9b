import { createHash } from 'node:crypto'
import { Agent as PlainAgent } from 'node:http'
import { Agent } from 'node:https'
import { Socket } from 'node:net'
import { Readable } from 'node:stream'
import {
  DeleteObjectCommand,
  GetObjectCommand,
  HeadObjectCommand,
  ListObjectsV2Command,
  NoSuchKey,
  NotFound,
  PutObjectCommand,
  S3Client,
} from '@aws-sdk/client-s3'
import pLimit from 'p-limit'
import { boundReceived, type OutboundGuard } from '#outbound'
import { type DocumentTree, isListPath, partsPrefix, type Standing, tooLarge, wholePath } from '../documents/index.ts'
import { SinkError, type SnapshotDeclaration } from '../sink.ts'
import { Slots } from '../slots.ts'
import type { Bucket } from './bucket.ts'
import { s3Failure, statusOf, writtenMeanwhile } from './failure.ts'

/** Of an answer, bytes: a document that is read back, with its head. */
const MAX_ANSWER_BYTES = 65 * 2 ** 20
/** Of what a store says besides documents: the library reads it as XML, at length where that is nested or long. */
const MAX_WORDS_BYTES = 64 * 1024
/** What is longer, bytes, is read two at a time for each namespace: stores that hold it back hold no more of the memory. */
const SHORT_BYTES = 2 ** 20
const LONG_AT_ONCE = 2
const CONNECT_MS = 10_000
/** without a byte of an answer */
const SILENCE_MS = 30_000
/** Looks at objects at the same time. */
const AT_ONCE = 8
/** Of a list, so that with the longest of names it is within MAX_WORDS_BYTES. */
const LISTED_AT_ONCE = 40
/** Of a bucket with more objects no more are looked at. */
const MAX_LISTED = 100_000
/** Metadata of an object: the key of the inventory that wrote it. */
const OWNER = 'clusterpulse-owner'
/** Metadata of an object: of its content. */
const DIGEST = 'clusterpulse-sha256'

/** A store that does not know a condition, as many besides AWS, says so. */
const NOT_IMPLEMENTED = 501

/** A document of a bucket. */
export interface StoredText {
  readonly path: string
  readonly text: string
  readonly contentType: string
  /** key of the inventory whose document it is */
  readonly owner?: string
  /** nothing stood there a moment ago: what somebody else has put there since stays, and the write fails */
  readonly isNew?: boolean
}

export interface StoreKeys {
  readonly accessKeyId: string
  readonly secretAccessKey: string
  readonly sessionToken?: string
}

function bounded<T extends PlainAgent>(agent: T): T {
  const dial = agent.createConnection.bind(agent)
  agent.createConnection = (...how) => {
    const socket = dial(...how)
    if (socket instanceof Socket) boundReceived(socket, MAX_ANSWER_BYTES)
    return socket
  }
  return agent
}

/** The documents of one prefix of a bucket. What a call throws is a SinkError, or the reason of its signal. */
export class S3Store implements DocumentTree {
  readonly #bucket: Bucket
  readonly #guard: OutboundGuard
  readonly #client: S3Client
  readonly #longReads: Slots
  #knowsConditions = true

  constructor(
    bucket: Bucket,
    keys: StoreKeys,
    { spec, caBundle, namespace }: SnapshotDeclaration,
    guard: OutboundGuard,
  ) {
    this.#bucket = bucket
    this.#guard = guard
    this.#longReads = longReads.get(namespace) ?? new Slots(LONG_AT_ONCE, 1000)
    longReads.set(namespace, this.#longReads)
    const tls = {
      ...(caBundle !== undefined && { ca: caBundle }),
      rejectUnauthorized: spec.tls?.insecureSkipVerify !== true,
    }
    const connections = { keepAlive: true, maxSockets: AT_ONCE, lookup: guard.lookup }
    // It would warn of releases that are not in the lock file.
    process.env.AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED ??= 'true'
    this.#client = new S3Client({
      endpoint: bucket.endpoint,
      region: bucket.region,
      forcePathStyle: bucket.isPathStyle,
      credentials: keys,
      // Throttling and broken connections; what lasts longer is for whoever delivers.
      maxAttempts: 3,
      retryMode: 'standard',
      // Nothing comes from files or the environment of this machine.
      defaultsMode: 'legacy',
      useFipsEndpoint: false,
      useDualstackEndpoint: false,
      useArnRegion: false,
      followRegionRedirects: false,
      userAgentAppId: 'clusterpulse',
      // Stores besides AWS do not know the newer checksums.
      requestChecksumCalculation: 'WHEN_REQUIRED',
      responseChecksumValidation: 'WHEN_REQUIRED',
      requestHandler: {
        httpAgent: bounded(new PlainAgent(connections)),
        httpsAgent: bounded(new Agent({ ...connections, ...tls })),
        connectionTimeout: CONNECT_MS,
        requestTimeout: SILENCE_MS,
        socketTimeout: SILENCE_MS,
        throwOnRequestTimeout: true,
      },
    })
    boundWords(this.#client)
  }

  async read(path: string, maxBytes: number, signal: AbortSignal): Promise<string | undefined> {
    return this.#call(signal, async () => {
      const command = new GetObjectCommand(this.#key(path))
      const found = await this.#client.send(command, { abortSignal: signal }).catch(absent)
      if (!found?.Body) return undefined
      const body = found.Body as Readable // in Node.js it is one
      const bytes = await bytesOf(body, maxBytes, () => this.#longReads.take(signal))
      if (!bytes) throw tooLarge(path, maxBytes)
      return bytes.toString('utf8')
    })
  }

  async existing(paths: readonly string[], signal: AbortSignal): Promise<Standing> {
    const turn = pLimit(AT_ONCE)
    const found = await Promise.all(paths.map((path) => turn(() => this.#headOf(path, signal))))
    return new Map(
      found.flatMap((head, i) => {
        const { Metadata = {}, ContentLength = 0 } = head ?? {}
        const owner = Metadata[OWNER]
        // What says nothing of itself was put there by another program.
        const file = owner === undefined ? {} : { owner, mark: markWith(Metadata[DIGEST], ContentLength) }
        return head ? [[paths[i] as string, file]] : [] // one for each path
      }),
    )
  }

  // biome-ignore lint/correctness/useYield: each file says itself whose it is
  async *manifests(): AsyncIterable<never> {
    return
  }

  async listsOf(owner: string, signal: AbortSignal): Promise<readonly string[]> {
    const lists = await this.#listed('', isListPath, signal)
    const there = await this.existing(lists, signal)
    return lists.filter((one) => there.get(one)?.owner === owner)
  }

  partsOf(path: string, signal: AbortSignal): Promise<readonly string[]> {
    return this.#listed(partsPrefix(path), (one) => wholePath(one) === path, signal)
  }

  async #listed(prefix: string, isMeant: (path: string) => boolean, signal: AbortSignal): Promise<readonly string[]> {
    const { Bucket, Key: Prefix } = this.#key(prefix)
    const paths: string[] = []
    let token: string | undefined
    for (let listed = 0; listed < MAX_LISTED; listed += LISTED_AT_ONCE) {
      const from = token === undefined ? {} : { ContinuationToken: token }
      const command = new ListObjectsV2Command({ Bucket, Prefix, MaxKeys: LISTED_AT_ONCE, ...from })
      const found = await this.#call(signal, () => this.#client.send(command, { abortSignal: signal }))
      const keys = (found.Contents ?? []).flatMap(({ Key }) => Key ?? [])
      paths.push(...keys.map((key) => key.slice(this.#bucket.prefix.length)).filter(isMeant))
      token = found.NextContinuationToken
      if (token === undefined) break
    }
    return paths
  }

  async write(object: StoredText, signal: AbortSignal): Promise<void> {
    await this.#call(signal, async () => {
      if (object.isNew !== true) return this.#put(object, signal)
      if (this.#knowsConditions)
        try {
          return await this.#put(object, signal, { IfNoneMatch: '*' })
        } catch (error) {
          if (statusOf(error) !== NOT_IMPLEMENTED) throw error
          this.#knowsConditions = false
        }
      // The answer took its time, in which somebody else may have come: what is left is the moment between these two.
      const found = await this.#headOf(object.path, signal)
      if (found && found.Metadata?.[OWNER] !== object.owner) throw writtenMeanwhile()
      return this.#put(object, signal)
    })
  }

  async delete(path: string, signal: AbortSignal): Promise<void> {
    await this.#call(signal, () =>
      this.#client.send(new DeleteObjectCommand(this.#key(path)), { abortSignal: signal }).catch(absent),
    )
  }

  close(): void {
    this.#client.destroy()
  }

  #put({ path, text, contentType, owner }: StoredText, signal: AbortSignal, condition: { IfNoneMatch?: string } = {}) {
    const command = new PutObjectCommand({
      ...this.#key(path),
      ...{ Body: text, ContentType: contentType },
      ...(owner !== undefined && { Metadata: { [OWNER]: owner, [DIGEST]: digestOf(text) } }),
      ...condition,
    })
    return this.#client.send(command, { abortSignal: signal })
  }

  #headOf(path: string, signal: AbortSignal) {
    return this.#call(signal, () =>
      this.#client.send(new HeadObjectCommand(this.#key(path)), { abortSignal: signal }).catch(absent),
    )
  }

  #key(path: string): { readonly Bucket: string; readonly Key: string } {
    return { Bucket: this.#bucket.bucket, Key: `${this.#bucket.prefix}${path}` }
  }

  async #call<T>(signal: AbortSignal, action: () => Promise<T>): Promise<T> {
    signal.throwIfAborted()
    try {
      // A host that is an address is never looked up.
      this.#guard.check(this.#bucket.host)
      return await action()
    } catch (error) {
      signal.throwIfAborted()
      throw s3Failure(error, this.#bucket.endpoint)
    }
  }
}

/** Hands the library what a store says when it was read within the bound. */
function boundWords({ middlewareStack }: S3Client): void {
  middlewareStack.add(
    (next, { commandName }) =>
      async (args) => {
        const result = await next(args)
        const response = result.response as { readonly statusCode: number; body?: unknown }
        const isDocument = commandName === 'GetObjectCommand' && response.statusCode < 300
        if (isDocument || !(response.body instanceof Readable)) return result
        const words = await bytesOf(response.body, MAX_WORDS_BYTES)
        if (!words)
          throw new SinkError('transient', `the store says more than 64 KiB with status ${response.statusCode}`)
        response.body = Readable.from([words])
        return result
      },
    // Beside the connection, before anything is read.
    { name: 'boundWords', step: 'deserialize', priority: 'low' },
  )
}

const digestOf = (text: string): string => createHash('sha256').update(text).digest('hex')
const markWith = (digest: string | undefined, bytes: number): string => `${bytes} ${digest ?? ''}`

/** As a document with this text is marked that stands there. */
export const markOf = (text: string): string => markWith(digestOf(text), Buffer.byteLength(text))

/** Whether a document may have this text: of one that a former version wrote only the length is known. */
export const mayBe = (mark: string | undefined, text: string): boolean =>
  mark === markOf(text) || mark === markWith(undefined, Buffer.byteLength(text))

/** Of each namespace, whatever sinks it has. */
const longReads = new Map<string, Slots>()

/**
 * @param turn is waited for where it is long; ends with a call of what it gives
 * @returns undefined where it has more than that
 */
async function bytesOf(
  body: Readable,
  maxBytes: number,
  turn?: () => Promise<() => void>,
): Promise<Buffer | undefined> {
  const chunks: Buffer[] = []
  let bytes = 0
  let done: (() => void) | undefined
  try {
    for await (const chunk of body as AsyncIterable<Buffer>) {
      bytes += chunk.length
      if (bytes > maxBytes) return undefined // which ends the stream
      if (bytes > SHORT_BYTES) done ??= await turn?.()
      chunks.push(chunk)
    }
    return Buffer.concat(chunks)
  } finally {
    done?.()
  }
}

/** An object that is not there. A bucket that is not there is something else, and says so. */
function absent(error: unknown): undefined {
  if (!(error instanceof NoSuchKey) && !(error instanceof NotFound)) throw error
}
