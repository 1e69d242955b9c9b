import { createHash, type Hash } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import {
  type DocumentLayout,
  type DocumentPlan,
  documentFormats,
  everyFile,
  HeldPositions,
  layoutOf,
  ownerKey,
  planDocuments,
  planMove,
  planRemoval,
  previewDocuments,
  toldOf,
} from '../documents/index.ts'
import {
  type Delivery,
  type Position,
  type Probe,
  type Receipt,
  type Sink,
  type SinkContext,
  SinkError,
  type SinkPreview,
  type SnapshotDeclaration,
  type Writing,
} from '../sink.ts'
import { type Bucket, parseBucket } from './bucket.ts'
import { markOf, mayBe, S3Store, type StoreKeys } from './store.ts'

/** Inventories whose documents are known to be right without being made again. */
const MAX_RIGHT = 10_000
/** What a connection test writes and takes away again. */
const TEST_OBJECT = '.kollect-connection-test'
const { contentType } = documentFormats.json

/** Envelopes in a bucket, overwritten in place; the set manifest, written last, says which belong together. */
export class S3Sink implements Sink {
  readonly family = 'snapshot'
  readonly #declaration: SnapshotDeclaration
  readonly #context: SinkContext
  readonly #bucket: Bucket
  readonly #layout: DocumentLayout
  readonly #store: S3Store
  readonly #held = new HeldPositions()
  /** marks of the documents of an inventory as they were written or seen to be right, by the key of their owner */
  readonly #right = new LRUCache<string, string>({ max: MAX_RIGHT })

  /** @throws SinkError terminal, for a declaration that can never work */
  constructor(declaration: SnapshotDeclaration, context: SinkContext) {
    const { spec, credentials } = declaration
    this.#declaration = declaration
    this.#context = context
    this.#bucket = parseBucket(spec.endpoint ?? '', text(credentials, 'region', 'AWS_REGION', 'AWS_DEFAULT_REGION'))
    this.#layout = layoutOf(spec, { defaultFormat: 'json', onlyDefault: true, takesTrees: false })
    this.#store = new S3Store(this.#bucket, keysOf(credentials), declaration, context.guard)
  }

  async probe(signal: AbortSignal): Promise<Probe> {
    const warnings = [...this.#warnings]
    try {
      const text = 'written by a connection test\n'
      await this.#store.write({ path: TEST_OBJECT, text, contentType: 'text/plain' }, signal)
      await this.#store.delete(TEST_OBJECT, signal)
      return { verified: true, message: `the bucket ${this.#bucket.bucket} may be written to`, warnings }
    } catch (error) {
      signal.throwIfAborted()
      if (!(error instanceof SinkError)) throw error
      return { verified: false, message: error.message, warnings }
    }
  }

  async deliver(delivery: Delivery, signal: AbortSignal): Promise<Receipt> {
    const { writing, position } = delivery
    const options = { ...this.#planning, writer: this.#context.writer, held: this.#held }
    const plan = await planDocuments(delivery, options, signal)
    const takeMoved = async () => {
      const paths = await planMove(delivery, plan, options, signal)
      await this.#take(paths, signal)
      return paths.length
    }
    if (plan.kind === 'none') return { ...plan.receipt, removed: await takeMoved() }
    const receipt = { position, written: 0, removed: plan.removed.length, bytes: 0, ...toldOf(plan) }
    const owner = ownerKey(writing)
    const right = this.#right.get(owner)
    const isRight = plan.isSame && right !== undefined && right === standingMark(plan)
    this.#right.delete(owner)
    // Beside an incomplete one rows of before stand that are read from itself. Where the list says nothing of itself the store keeps no such words.
    const compares = delivery.complete && plan.there.get(plan.manifest.path)?.owner !== undefined
    const marks = createHash('sha256')
    const free = new Set(plan.free)
    for (const file of plan.ahead) {
      await this.#store.write({ ...file, contentType, owner, isNew: free.has(file.path) }, signal)
      free.delete(file.path)
    }
    for (const { path, text: body } of isRight ? [] : filesOf(plan)) {
      const { mark } = plan.there.get(path) ?? {}
      const stays = plan.isSame && !plan.free.has(path) && (!compares || mayBe(mark, body))
      if (path !== plan.manifest.path) addMark(marks, path, stays ? mark : markOf(body))
      if (stays) continue
      await this.#store.write({ path, text: body, contentType, owner, isNew: free.has(path) }, signal)
      receipt.written++
      receipt.bytes += Buffer.byteLength(body)
    }
    await this.#take(plan.removed, signal)
    this.#held.set(writing, plan.position, position)
    this.#right.set(owner, isRight ? right : marks.digest('hex'))
    receipt.removed += await takeMoved()
    return receipt
  }

  async remove(writing: Writing, position: Position, signal: AbortSignal, formerList?: string): Promise<void> {
    await this.#take(await planRemoval(writing, position, this.#planning, signal, formerList), signal)
  }

  preview(writing: Writing): SinkPreview {
    const preview = previewDocuments(this.#layout, writing, this.#declaration.spec.provisioning?.mode ?? 'ensure')
    return { ...preview, objectPath: `${this.#bucket.prefix}${preview.objectPath}` }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#store.close()
  }

  async #take(paths: readonly string[], signal: AbortSignal): Promise<void> {
    for (const path of paths) await this.#store.delete(path, signal)
  }

  get #planning() {
    const { namespace, name } = this.#declaration
    return { layout: this.#layout, tree: this.#store, sink: `${namespace}/${name}` }
  }

  get #warnings(): readonly string[] {
    return [
      ...(this.#bucket.endpoint.startsWith('http:') ? ['what is sent is not encrypted: write https'] : []),
      ...(this.#declaration.spec.tls?.insecureSkipVerify === true
        ? ['nobody verifies who answers: anyone in between can read what is sent']
        : []),
    ]
  }
}

/** What has to stand there; of content that does already the list was just read. */
const filesOf = (plan: DocumentPlan & { readonly kind: 'write' }) =>
  plan.isSame && !plan.isTaken ? plan.files() : everyFile(plan)

function addMark(marks: Hash, path: string, mark: string | undefined): void {
  marks.update(`${path}\0${mark}\0`)
}

/** Of the documents as they stand there, in the order in which they are written. */
function standingMark({ paths, there }: DocumentPlan & { readonly kind: 'write' }): string {
  const marks = createHash('sha256')
  for (const path of paths) addMark(marks, path, there.get(path)?.mark)
  return marks.digest('hex')
}

/** Keys come from the Secret of the sink alone: those of the machine are the agent's, and sinks are declared by others. */
function keysOf(credentials: SnapshotDeclaration['credentials']): StoreKeys {
  const accessKeyId = text(credentials, 'accessKeyID', 'accessKeyId', 'AWS_ACCESS_KEY_ID')
  const secretAccessKey = text(credentials, 'secretAccessKey', 'AWS_SECRET_ACCESS_KEY')
  const sessionToken = text(credentials, 'sessionToken', 'AWS_SESSION_TOKEN')
  if (accessKeyId === undefined || secretAccessKey === undefined)
    throw new SinkError(
      'terminal',
      'the sink has no keys: name a Secret with accessKeyID and secretAccessKey in secretRef',
    )
  const keys = { accessKeyID: accessKeyId, secretAccessKey, sessionToken }
  const odd = Object.entries(keys).find(([, value]) => value !== undefined && !/^[!-~]+$/.test(value))
  if (odd)
    throw new SinkError(
      'terminal',
      `${odd[0]} of the Secret has a space, a line break or a letter in it that no key has: put in the key as the store gave it`,
    )
  return { accessKeyId, secretAccessKey, ...(sessionToken !== undefined && { sessionToken }) }
}

function text(values: SnapshotDeclaration['credentials'], ...names: readonly string[]): string | undefined {
  const found = names.map((name) => values[name]).find((value) => value !== undefined && value.length > 0)
  return found && Buffer.from(found).toString('utf8').trim()
}
