import { createHash } from 'node:crypto'
import { join } from 'node:path'
import { minutes, systemClock } from '#model'
import { backoffMs } from '#runtime'
import {
  type DocumentFile,
  type DocumentLayout,
  everyFile,
  HeldPositions,
  layoutOf,
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
import { Slots } from '../slots.ts'
import { twoCredentials } from '../two-credentials.ts'
import { type GitAccess, openAccess, secretsOf } from './access.ts'
import { GitCaches } from './caches.ts'
import { type CommitFacts, commitMessage } from './commit-message.ts'
import { gitFailure } from './failure.ts'
import { GitTree } from './git-tree.ts'
import { type GitRemote, parseRemote } from './remote.ts'
import { GitCacheError, GitRepository } from './repository.ts'

/** Pushes that others may overtake before a delivery gives up, to be made again later. */
const ATTEMPTS = 10
/** of one call, children included */
const TIMEOUT_MS = minutes(2)
/** Commits between two times of tidying the cache. */
const TIDY_EVERY = 200

/** One at a time for each branch of each remote, whatever sinks name it: they would overtake each other. */
const branches = new Map<string, Slots>()
/** Of each folder, whatever sinks have their caches in it. */
const folders = new Map<string, GitCaches>()

/** What is going to be committed, or why nothing is. */
type Decision =
  | {
      readonly kind: 'commit'
      readonly message: string
      readonly files: Iterable<DocumentFile>
      readonly removed: readonly string[]
      done(): Receipt
    }
  | { readonly kind: 'none'; readonly receipt: Receipt }

interface Session {
  readonly access: GitAccess
  readonly repository: GitRepository
  readonly signal: AbortSignal
}

/** Documents in a branch of a git repository, committed on top of whatever stands there, never over it. */
export class GitSink implements Sink {
  readonly family = 'snapshot'
  readonly #declaration: SnapshotDeclaration
  readonly #context: SinkContext
  readonly #remote: GitRemote
  readonly #layout: DocumentLayout
  readonly #isForced: boolean
  readonly #held = new HeldPositions()
  readonly #repository: GitRepository
  readonly #caches: GitCaches
  /** name of the folder of its cache */
  readonly #cache: string
  #commits = 0

  /** @throws SinkError terminal, for a spec that admission would refuse */
  constructor(declaration: SnapshotDeclaration, context: SinkContext) {
    const { spec, namespace, name } = declaration
    this.#declaration = declaration
    this.#context = context
    this.#remote = parseRemote(spec.endpoint ?? '', spec.git?.branch)
    this.#layout = layoutOf(spec, { defaultFormat: 'yaml', takesTrees: true })
    this.#isForced = spec.git?.pushPolicy === 'ForcePush'
    if (this.#isForced && context.semantics !== 'original')
      throw new SinkError('terminal', 'pushPolicy ForcePush overwrites what other clusters wrote: write Commit')
    const cache = createHash('sha256')
      .update(JSON.stringify([this.#remote, namespace, name]))
      .digest('hex')
      .slice(0, 24)
    const folder = join(context.directory, 'git')
    this.#repository = new GitRepository(this.#remote, join(folder, cache), secretsOf(declaration))
    this.#caches = folders.get(folder) ?? new GitCaches(folder)
    folders.set(folder, this.#caches)
    this.#cache = cache
  }

  async probe(signal: AbortSignal): Promise<Probe> {
    const warnings = [...this.#warnings]
    try {
      const isEmpty = await this.#session(signal, async ({ access, repository, signal: stop }) => {
        const tip = await this.#fetch({ access, repository, signal: stop })
        const nothing = { message: 'probe\n', author: this.#author, at: this.#seconds, removed: [], files: [] }
        await repository.commit(tip, nothing, stop)
        await repository.tryPush(access, stop)
        return tip === undefined
      })
      const what = isEmpty
        ? 'the repository is empty, and may be written to'
        : `the branch ${this.#remote.branch} may be written to`
      return { verified: true, message: what, warnings }
    } catch (error) {
      signal.throwIfAborted()
      if (!(error instanceof SinkError)) throw error
      return { verified: false, message: error.message, warnings }
    }
  }

  deliver(delivery: Delivery, signal: AbortSignal): Promise<Receipt> {
    return this.#session(signal, (session) =>
      this.#replay(session, (tree) => this.#delivered(delivery, tree, session.signal)),
    )
  }

  async remove(writing: Writing, position: Position, signal: AbortSignal, formerList?: string): Promise<void> {
    await this.#session(signal, (session) =>
      this.#replay(session, async (tree) => {
        const options = { layout: this.#layout, tree, sink: this.#name }
        const removed = await planRemoval(writing, position, options, session.signal, formerList)
        return this.#takenAway(writing, removed, { position, written: 0, removed: removed.length, bytes: 0 })
      }),
    )
  }

  #takenAway(writing: Writing, removed: readonly string[], receipt: Receipt): Decision {
    if (removed.length === 0) return { kind: 'none', receipt }
    const facts = { ...this.#factsOf(writing), generation: 0, itemCount: 0, checksum: '', exportedAt: this.#moment }
    const message = commitMessage(this.#declaration.spec.git ?? {}, facts, true)
    return { kind: 'commit', message, files: [], removed, done: () => receipt }
  }

  get #name(): string {
    const { namespace, name } = this.#declaration
    return `${namespace}/${name}`
  }

  preview(writing: Writing): SinkPreview {
    const { spec } = this.#declaration
    const preview = previewDocuments(this.#layout, writing, spec.provisioning?.mode ?? 'ensure')
    const facts = { generation: 1, itemCount: 42, checksum: '0'.repeat(64), exportedAt: this.#moment }
    const [subject = '', ...body] = commitMessage(spec.git ?? {}, { ...this.#factsOf(writing), ...facts })
      .trim()
      .split('\n')
    return { ...preview, git: { sampleCommitSubject: subject, sampleCommitBody: body.join('\n').trim() } }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    // Every call ends its children, and removes its files; the cache serves whoever opens this sink next.
  }

  /** Decides on the tip of the branch, commits and pushes; where somebody else was faster, again on top of what they pushed. */
  async #replay(session: Session, decide: (tree: GitTree) => Promise<Decision>): Promise<Receipt> {
    const { access, repository, signal } = session
    for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
      if (attempt > 0) await systemClock.sleep(backoffMs(attempt, { fromMs: 50, toMs: 3000 }), signal)
      signal.throwIfAborted()
      const tip = await this.#fetch(session)
      const decision = await decide(new GitTree(repository, tip))
      if (decision.kind === 'none') return decision.receipt
      const { message, files, removed } = decision
      await repository.commit(tip, { message, author: this.#author, at: this.#seconds, removed, files }, signal)
      const push = await repository.push(access, this.#isForced, signal)
      if (push.kind === 'refused') throw gitFailure(push.stderr, this.#remote, secretsOf(this.#declaration))
      if (push.kind === 'pushed') {
        if (++this.#commits % TIDY_EVERY === 0) await repository.tidy(signal)
        return decision.done()
      }
    }
    throw new SinkError(
      'transient',
      `others pushed to ${this.#remote.branch} first, ${ATTEMPTS} times in a row; it is tried again later`,
    )
  }

  async #delivered(delivery: Delivery, tree: GitTree, signal: AbortSignal): Promise<Decision> {
    const { writing, position } = delivery
    const { writer } = this.#context
    const options = { layout: this.#layout, writer, tree, held: this.#held, sink: this.#name, isAtomic: true }
    const plan = await planDocuments(delivery, options, signal)
    const moved = await planMove(delivery, plan, options, signal)
    if (plan.kind === 'none') return this.#takenAway(writing, moved, { ...plan.receipt, removed: moved.length })
    const goes = [...plan.removed, ...moved]
    const there = await tree.files([...plan.paths, ...goes, plan.manifest.path], signal)
    const removed = goes.filter((path) => there.has(path))
    const receipt = { position, written: 0, removed: removed.length, bytes: 0, ...toldOf(plan) }
    const every = everyFile(plan)
    function* changed(): Generator<DocumentFile> {
      for (const file of every) {
        if (there.get(file.path) === blobId(file.text)) continue
        receipt.written++
        receipt.bytes += Buffer.byteLength(file.text)
        yield file
      }
    }
    const done = () => {
      this.#held.set(writing, plan.position, position)
      return receipt
    }
    const files = changed()
    const first = files.next()
    if (first.done && removed.length === 0) return { kind: 'none', receipt: done() }
    const facts = { ...this.#factsOf(writing), ...factsOf(delivery) }
    const message = commitMessage(this.#declaration.spec.git ?? {}, facts)
    return { kind: 'commit', message, files: first.done ? [] : following(first.value, files), removed, done }
  }

  /** Alone on this branch, with what it takes to get there, within the time for one call. */
  async #session<T>(signal: AbortSignal, action: (session: Session) => Promise<T>): Promise<T> {
    const key = `${this.#remote.url} ${this.#remote.branch}`
    const slots = branches.get(key) ?? new Slots(1, 1000)
    branches.set(key, slots)
    const release = await slots.take(signal)
    const limit = AbortSignal.timeout(TIMEOUT_MS)
    try {
      return await this.#caches.using(this.#cache, () => this.#attempted(AbortSignal.any([signal, limit]), action))
    } catch (error) {
      signal.throwIfAborted()
      const { code, syscall } = error as NodeJS.ErrnoException
      if (code !== undefined && syscall !== undefined && !syscall.startsWith('spawn'))
        throw new SinkError(
          'transient',
          `the agent cannot use its own folder (${code}): whoever runs it must see to BUFFER_DIR`,
          { cause: error },
        )
      if (!limit.aborted) throw error
      throw new SinkError('transient', 'the remote took longer than 2 minutes; it is tried again later', {
        cause: error,
      })
    } finally {
      release()
    }
  }

  async #attempted<T>(signal: AbortSignal, action: (session: Session) => Promise<T>): Promise<T> {
    const repository = this.#repository
    const { guard, logger } = this.#context
    const directory = repository.accessDirectory
    const access = await openAccess({ remote: this.#remote, declaration: this.#declaration, guard, directory }, signal)
    const opened = async () => {
      await repository.open(signal)
      return action({ access, repository, signal })
    }
    try {
      return await opened()
    } catch (error) {
      if (!(error instanceof GitCacheError)) throw error
      logger.warn({ err: error }, 'the cache of a repository cannot be used: it is fetched anew')
      await repository.discard()
      return await opened()
    } finally {
      await access[Symbol.asyncDispose]()
    }
  }

  #fetch({ access, repository, signal }: Session): Promise<string | undefined> {
    const { git, provisioning } = this.#declaration.spec
    return repository.fetchTip(access, git?.cloneDepth ?? 1, provisioning?.mode !== 'existing', signal)
  }

  get #author() {
    const { name = 'kollect', email = 'kollect@kollect.dev' } = this.#declaration.spec.git?.author ?? {}
    return { name, email }
  }

  get #seconds(): number {
    return Math.floor(this.#context.now() / 1000)
  }

  get #moment(): string {
    return new Date(this.#context.now()).toISOString()
  }

  #factsOf(writing: Writing): Pick<CommitFacts, 'cluster' | 'namespace' | 'name' | 'sink' | 'path'> {
    const { namespace, name } = this.#declaration
    const { objectPath } = previewDocuments(this.#layout, writing, '')
    return {
      cluster: writing.cluster,
      namespace: writing.namespace,
      name: writing.inventory,
      sink: `${namespace}/${name}`,
      path: objectPath,
    }
  }

  get #warnings(): readonly string[] {
    const { spec, credentials } = this.#declaration
    const isPlain = this.#remote.scheme === 'http' && Object.keys(credentials).length > 0
    return [
      ...(isPlain ? ['credentials are sent unencrypted: write https'] : []),
      ...(this.#remote.scheme === 'ssh' ? [] : twoCredentials(credentials, ['token', 'password'])),
      ...(spec.tls?.insecureSkipVerify === true
        ? ['nobody verifies who answers: anyone in between can read what is sent']
        : []),
      ...(this.#isForced ? ['pushes are forced: what others push at the same time is lost'] : []),
    ]
  }
}

const factsOf = ({ generation, itemCount, checksum, takenAt }: Delivery) => ({
  generation,
  itemCount,
  checksum,
  exportedAt: new Date(takenAt).toISOString(),
})

function* following(first: DocumentFile, rest: Iterable<DocumentFile>): Generator<DocumentFile> {
  yield first
  yield* rest
}

/** The name that git has for a file of this text. */
const blobId = (text: string): string => {
  const bytes = Buffer.from(text)
  return createHash('sha1').update(`blob ${bytes.length}\0`).update(bytes).digest('hex')
}
