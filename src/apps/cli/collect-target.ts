import {
  compileProfile,
  compileSelection,
  type Extractor,
  HOME_OF_CLUSTER_OBJECTS,
  type NamespaceFacts,
  type Row,
  type Selection,
} from '#extract'
import type { GroupVersionKind, KollectClusterTargetSpec, KollectProfile, KollectTargetSpec } from '#kinds'
import { isKubeError, type KubeClient, KubeError, type KubeObject, outcomeOf, type Resource } from '#kube'
import type { Ceiling } from './collect-ceiling.ts'

/** A target with its profile, ready to be read. */
export interface Target {
  /** namespace and name, for people */
  readonly title: string
  readonly name: string
  /** undefined: of the cluster; its rows carry the namespace of their object */
  readonly namespace: string | undefined
  readonly spec: KollectTargetSpec | KollectClusterTargetSpec
  readonly profile: KollectProfile['spec']
  readonly annotations: Readonly<Record<string, string>>
}

/**
 * How it went. `collected`: all of it; `partial`: rows, but not all of them; `absent`: the cluster has no such kind; `forbidden`,
 * `unreachable`: nothing could be read; `invalid`: it cannot be used as it is declared.
 */
export type TargetState = 'collected' | 'partial' | 'absent' | 'forbidden' | 'unreachable' | 'invalid' | 'suspended'

export interface TargetResult {
  readonly title: string
  readonly kind: string
  readonly state: TargetState
  readonly rows: readonly Row[]
  /** objects without a row */
  readonly failed: number
  /** what people should know, a sentence each */
  readonly notes: readonly string[]
}

export interface TargetContext {
  readonly kube: KubeClient
  /** what is known of namespaces; throws KubeError */
  readonly namespacesFor: (selection: Selection, target: Target) => Promise<readonly NamespaceFacts[]>
  readonly ceiling: (gvk: GroupVersionKind, wanted: readonly string[]) => Ceiling
  /** only this namespace */
  readonly namespace: string | undefined
  readonly signal: AbortSignal
  readonly onObjects: (count: number) => void
}

/** So many namespaces are listed one by one; more by one list of the cluster, where that is allowed. */
const MAX_SINGLE = 8
/** A list whose version expires on the server begins anew. */
const MAX_RESTARTS = 3

/** Reads one target. Never throws but for the signal. */
export async function collectTarget(target: Target, context: TargetContext): Promise<TargetResult> {
  const { targetGVK: gvk } = target.profile
  const base = { title: target.title, kind: gvk.kind, rows: [], failed: 0 }
  if (target.spec.suspend) return { ...base, state: 'suspended', notes: [] }
  const { extractor, faults } = compileProfile({ metadata: { annotations: target.annotations }, spec: target.profile })
  if (!extractor) return { ...base, state: 'invalid', notes: faults.map(({ path, message }) => `${path}: ${message}`) }
  try {
    return await read(target, extractor, context)
  } catch (error) {
    context.signal.throwIfAborted()
    if (!(error instanceof KubeError)) throw error
    return { ...base, state: outcomeOf(error), notes: [error.message] }
  }
}

async function read(target: Target, extractor: Extractor, context: TargetContext): Promise<TargetResult> {
  const { targetGVK: gvk } = target.profile
  const { group = '', version, kind } = gvk
  const base = { title: target.title, kind, rows: [], failed: 0 }
  const served = await context.kube.find(group, version, kind, context.signal)
  if (!served)
    return {
      ...base,
      state: 'absent',
      notes: [`the cluster does not have ${kind} of ${group === '' ? version : `${group}/${version}`}`],
    }
  const selection = compileSelection(target, gvk)
  const known = await context.namespacesFor(selection, target)
  const ceiling = context.ceiling(gvk, selection.namespaces(known))
  if ('denied' in ceiling) return { ...base, state: 'forbidden', notes: [ceiling.denied] }
  const wanted = ceiling.namespaces.filter((name) => context.namespace === undefined || name === context.namespace)
  const resource: Resource = { group, version, kind, plural: served.plural, namespaced: served.namespaced }
  const facts = new Map(known.map((one) => [one.name, one]))
  const rows = new RowsOfTarget(target, selection, extractor, facts, new Set(wanted), context.onObjects)
  if (!served.namespaced) {
    if (wanted.includes(HOME_OF_CLUSTER_OBJECTS)) await rows.readAll(context, resource, undefined)
    else
      rows.note(
        `${kind} belongs to no namespace and counts as of ${HOME_OF_CLUSTER_OBJECTS}: name that in includedNamespaces to collect it`,
      )
  } else if (wanted.length === 0) rows.note('it chooses no namespace of this cluster')
  else await readNamespaces(rows, context, resource, wanted)
  return rows.result()
}

async function readNamespaces(
  rows: RowsOfTarget,
  context: TargetContext,
  resource: Resource,
  wanted: readonly string[],
): Promise<void> {
  if (wanted.length > MAX_SINGLE) {
    const refused = await rows.readAll(context, resource, undefined, true)
    if (!refused) return
  }
  for (const namespace of wanted) await rows.readAll(context, resource, namespace)
}

/** Rows of one target, and what went wrong with them. */
class RowsOfTarget {
  readonly #target: Target
  readonly #selection: Selection
  readonly #extractor: Extractor
  readonly #facts: ReadonlyMap<string, NamespaceFacts>
  readonly #wanted: ReadonlySet<string>
  readonly #onObjects: (count: number) => void
  readonly #rows: Row[] = []
  readonly #notes: string[] = []
  #failed = 0
  #seen = 0
  #readLists = 0
  readonly #troubles: KubeError[] = []

  constructor(
    target: Target,
    selection: Selection,
    extractor: Extractor,
    facts: ReadonlyMap<string, NamespaceFacts>,
    wanted: ReadonlySet<string>,
    onObjects: (count: number) => void,
  ) {
    this.#target = target
    this.#selection = selection
    this.#extractor = extractor
    this.#facts = facts
    this.#wanted = wanted
    this.#onObjects = onObjects
    for (const { path, message } of extractor.warnings) this.note(`${path}: ${message}`)
  }

  note(text: string): void {
    this.#notes.push(text)
  }

  /**
   * Reads a list, page by page. One that breaks off keeps what came before, and says so.
   * @param mayBeRefused that it is forbidden is an answer: true
   */
  async readAll(
    { kube, signal }: TargetContext,
    resource: Resource,
    namespace: string | undefined,
    mayBeRefused = false,
  ): Promise<boolean> {
    for (let restarts = 0; ; restarts++) {
      const before = { rows: this.#rows.length, failed: this.#failed, notes: this.#notes.length }
      try {
        const where = namespace === undefined ? {} : { namespace }
        for await (const { items } of kube.list(resource, { ...where, signal })) this.#add(items)
        this.#readLists++
        return false
      } catch (error) {
        signal.throwIfAborted()
        if (!(error instanceof KubeError)) throw error
        if (mayBeRefused && outcomeOf(error) === 'forbidden') return true
        const read = this.#rows.length - before.rows
        if (isKubeError(error, 'expired') && restarts < MAX_RESTARTS) {
          this.#rows.length = before.rows
          this.#notes.length = before.notes
          this.#failed = before.failed
          continue
        }
        const half = read > 0 ? `; the list broke off after ${read} rows, which are kept` : ''
        this.note(`${namespace === undefined ? '' : `namespace ${namespace}: `}${error.message}${half}`)
        this.#troubles.push(error)
        return false
      }
    }
  }

  result(): TargetResult {
    const { title, profile } = this.#target
    const base = { title, kind: profile.targetGVK.kind, rows: this.#rows, failed: this.#failed, notes: this.#notes }
    const [trouble] = this.#troubles
    if (trouble && this.#rows.length === 0 && this.#readLists === 0) return { ...base, state: outcomeOf(trouble) }
    return { ...base, state: trouble || this.#failed > 0 ? 'partial' : 'collected' }
  }

  #add(items: readonly KubeObject[]): void {
    for (const object of items) {
      const namespace = object.metadata.namespace ?? HOME_OF_CLUSTER_OBJECTS
      if (!this.#wanted.has(namespace) || !this.#selection.chooses(object, this.#facts.get(namespace))) continue
      const { row, failure } = this.#extractor.row(object)
      if (row)
        this.#rows.push({
          targetNamespace: this.#target.namespace ?? row.namespace,
          targetName: this.#target.name,
          ...row,
        })
      else this.#fail(object, failure.attribute, failure.message)
    }
    this.#seen += items.length
    this.#onObjects(this.#seen)
  }

  #fail({ metadata }: KubeObject, attribute: string | undefined, message: string): void {
    this.#failed++
    if (this.#failed > 1) return
    const where = metadata.namespace === undefined ? metadata.name : `${metadata.namespace}/${metadata.name}`
    this.note(`${where}: ${attribute === undefined ? '' : `attribute ${attribute}: `}${message}`)
  }
}
