import {
  type DocumentFile,
  type DocumentLayout,
  type DocumentPlan,
  documentFormats,
  everyFile,
  HeldPositions,
  layoutOf,
  ownerKey,
  planDocuments,
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
import { S3Store, type StoreKeys } from './store.ts'

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
    const options = { layout: this.#layout, writer: this.#context.writer, tree: this.#store, held: this.#held }
    const plan = await planDocuments(delivery, options, signal)
    if (plan.kind === 'none') return plan.receipt
    const receipt = { position, written: 0, removed: plan.removed.length, bytes: 0, ...toldOf(plan) }
    for (const { path, text: body } of plan.isSame ? missingFiles(plan) : everyFile(plan)) {
      const owner = ownerKey(writing)
      await this.#store.write({ path, text: body, contentType, owner, isNew: plan.free.has(path) }, signal)
      receipt.written++
      receipt.bytes += Buffer.byteLength(body)
    }
    for (const path of plan.removed) await this.#store.delete(path, signal)
    this.#held.set(writing, plan.position, position)
    return receipt
  }

  async remove(writing: Writing, position: Position, signal: AbortSignal): Promise<void> {
    const removed = await planRemoval(writing, position, { layout: this.#layout, tree: this.#store }, signal)
    for (const path of removed) await this.#store.delete(path, signal)
  }

  preview(writing: Writing): SinkPreview {
    const preview = previewDocuments(this.#layout, writing, this.#declaration.spec.provisioning?.mode ?? 'ensure')
    return { ...preview, objectPath: `${this.#bucket.prefix}${preview.objectPath}` }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#store.close()
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

/** Of content that stands there already: the documents that somebody took away. */
function* missingFiles(plan: DocumentPlan & { readonly kind: 'write' }): Generator<DocumentFile> {
  if (plan.paths.every((path) => !plan.free.has(path))) return
  for (const file of plan.files()) if (plan.free.has(file.path)) yield file
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
