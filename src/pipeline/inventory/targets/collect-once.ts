import { HOME_OF_CLUSTER_OBJECTS, type NamespaceFacts, type Row } from '#extract'
import { isKubeError, type KubeClient, KubeError, type KubeObject, outcomeOf, type Resource } from '#kube'
import type { Ceiling, Reach } from './ceiling.ts'
import { type CompiledKind, type CompiledTarget, compileTarget, type TargetToCompile } from './compile.ts'

/** A target with its profile, ready to be read. */
export interface Target extends TargetToCompile {
  /** namespace and name, for people */
  readonly title: string
}

/**
 * How it went. `collected`: all of it; `partial`: rows, but not all of them; `absent`: the cluster has no such kind; `forbidden`,
 * `unreachable`: nothing could be read; `invalid`: it cannot be used as it is declared.
 */
export type TargetOutcome = 'collected' | 'partial' | 'absent' | 'forbidden' | 'unreachable' | 'invalid' | 'suspended'

export interface TargetResult {
  readonly title: string
  readonly kind: string
  readonly state: TargetOutcome
  readonly rows: readonly Row[]
  /** objects without a row */
  readonly failed: number
  /** what people should know, a sentence each */
  readonly notes: readonly string[]
}

export interface TargetContext {
  readonly kube: KubeClient
  /** what is known of namespaces; throws KubeError */
  readonly namespacesFor: (compiled: CompiledTarget, target: Target) => Promise<readonly NamespaceFacts[]>
  readonly ceiling: (wanted: Reach) => Ceiling
  /** only this namespace */
  readonly namespace: string | undefined
  readonly signal: AbortSignal
  readonly onObjects: (count: number) => void
}

/** So many namespaces are listed one by one; more by one list of the cluster, where that is allowed. */
const MAX_SINGLE = 8
/** A list whose version expires on the server begins anew. */
const MAX_RESTARTS = 3

/** Reads one target once. Never throws but for the signal. */
export async function collectTarget(target: Target, context: TargetContext): Promise<TargetResult> {
  const base = { title: target.title, kind: target.profile.spec.targetGVK.kind, rows: [], failed: 0 }
  if (target.spec.suspend) return { ...base, state: 'suspended', notes: [] }
  const compiled = compileTarget(target)
  if (!compiled.target)
    return { ...base, state: 'invalid', notes: compiled.faults.map(({ path, message }) => `${path}: ${message}`) }
  const kind = compiled.target.kinds.map(({ gvk }) => gvk.kind).join(',')
  try {
    return { ...(await read(target, compiled.target, context)), title: target.title, kind }
  } catch (error) {
    context.signal.throwIfAborted()
    if (!(error instanceof KubeError)) throw error
    return { ...base, kind, state: outcomeOf(error), notes: [error.message] }
  }
}

type Read = Omit<TargetResult, 'title' | 'kind'>

async function read(target: Target, compiled: CompiledTarget, context: TargetContext): Promise<Read> {
  const served: { readonly kind: CompiledKind; readonly resource: Resource }[] = []
  const missing: string[] = []
  for (const kind of compiled.kinds) {
    const { group = '', version, kind: name } = kind.gvk
    const found = await context.kube.find(group, version, name, context.signal)
    if (found) served.push({ kind, resource: { group, version, kind: name, ...found } })
    else missing.push(`the cluster does not have ${name} of ${group === '' ? version : `${group}/${version}`}`)
  }
  if (served.length === 0) return { rows: [], failed: 0, state: 'absent', notes: missing }
  const known = await context.namespacesFor(compiled, target)
  const wanted = { kinds: compiled.kinds.map(({ gvk }) => gvk), namespaces: compiled.namespaces(known) }
  const { reach, denied } = context.ceiling(wanted)
  if (!reach) return { rows: [], failed: 0, state: 'forbidden', notes: [`${denied.message} (${denied.reason})`] }
  const namespaces = reach.namespaces.filter((name) => context.namespace === undefined || name === context.namespace)
  const rows = new Reading(new Map(known.map((one) => [one.name, one])), new Set(namespaces), context)
  for (const { path, message } of compiled.warnings) rows.note(`${path}: ${message}`)
  for (const note of missing) rows.note(note)
  if (namespaces.length === 0 && served.some(({ resource }) => resource.namespaced))
    rows.note('it chooses no namespace of this cluster')
  for (const { kind, resource } of served) if (reach.kinds.includes(kind.gvk)) await rows.readKind(kind, resource)
  return rows.result(missing.length > 0)
}

/** Rows of one target, and what went wrong with them. */
class Reading {
  readonly #facts: ReadonlyMap<string, NamespaceFacts>
  readonly #wanted: ReadonlySet<string>
  readonly #context: TargetContext
  readonly #rows: Row[] = []
  readonly #notes: string[] = []
  #failed = 0
  #seen = 0
  #readLists = 0
  readonly #troubles: KubeError[] = []

  constructor(facts: ReadonlyMap<string, NamespaceFacts>, wanted: ReadonlySet<string>, context: TargetContext) {
    this.#facts = facts
    this.#wanted = wanted
    this.#context = context
  }

  note(text: string): void {
    this.#notes.push(text)
  }

  async readKind(kind: CompiledKind, resource: Resource): Promise<void> {
    if (!resource.namespaced) {
      if (this.#wanted.has(HOME_OF_CLUSTER_OBJECTS)) await this.#readAll(kind, resource, undefined)
      else
        this.note(
          `${resource.kind} belongs to no namespace and counts as of ${HOME_OF_CLUSTER_OBJECTS}: name that in includedNamespaces to collect it`,
        )
      return
    }
    if (this.#wanted.size > MAX_SINGLE && !(await this.#readAll(kind, resource, undefined, true))) return
    for (const namespace of this.#wanted) await this.#readAll(kind, resource, namespace)
  }

  result(isLacking: boolean): Read {
    const base = { rows: this.#rows, failed: this.#failed, notes: this.#notes }
    const [trouble] = this.#troubles
    if (trouble && this.#rows.length === 0 && this.#readLists === 0) return { ...base, state: outcomeOf(trouble) }
    return { ...base, state: trouble || this.#failed > 0 || isLacking ? 'partial' : 'collected' }
  }

  /**
   * Reads a list, page by page. One that breaks off keeps what came before, and says so.
   * @param mayBeRefused that it is forbidden is an answer: true
   */
  async #readAll(
    kind: CompiledKind,
    resource: Resource,
    namespace: string | undefined,
    mayBeRefused = false,
  ): Promise<boolean> {
    const { kube, signal } = this.#context
    for (let restarts = 0; ; restarts++) {
      const before = { rows: this.#rows.length, failed: this.#failed, notes: this.#notes.length }
      try {
        const where = namespace === undefined ? {} : { namespace }
        for await (const { items } of kube.list(resource, { ...where, signal })) this.#add(kind, items)
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

  #add(kind: CompiledKind, items: readonly KubeObject[]): void {
    for (const object of items) {
      const namespace = object.metadata.namespace ?? HOME_OF_CLUSTER_OBJECTS
      if (!this.#wanted.has(namespace)) continue
      const outcome = kind.take(object, this.#facts.get(namespace))
      if (outcome?.row) this.#rows.push(outcome.row)
      else if (outcome && ++this.#failed === 1) this.note(outcome.failure)
    }
    this.#seen += items.length
    this.#context.onObjects(this.#seen)
  }
}
