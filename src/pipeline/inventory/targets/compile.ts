import { compileProfile, compileSelection, type NamespaceFacts, type ProfileFault, type Row } from '#extract'
import type { GroupVersionKind, KollectClusterTargetSpec, KollectProfile, KollectTargetSpec } from '#kinds'
import type { TargetKey } from '../rows.ts'
import type { ExtractionTime } from './extraction-time.ts'
import { bytesOfRow } from './row-space.ts'

export type TargetSpec = KollectTargetSpec | KollectClusterTargetSpec

/** What a process adds to every target. */
export interface TargetDefaults {
  /** names that are secret besides those of profiles */
  readonly scrubKeys: readonly string[]
  /** namespaces of targets that name none; []: their own */
  readonly includedNamespaces: readonly string[]
  /** never read, whatever a target says */
  readonly excludedNamespaces: readonly string[]
}

export const NO_DEFAULTS: TargetDefaults = { scrubKeys: [], includedNamespaces: [], excludedNamespaces: [] }

const NO_TIME =
  'the targets of its namespace took more of the time that all share than they may: let their profiles take less of each object; it is looked at again within ten minutes'

/** For all expressions that choose one object; one alone is bounded by itself. */
const MAX_RULES_MS = 500
const LONG_RULES = `the policies that choose it take more than ${MAX_RULES_MS} ms together, or one of them half of it: take fewer, or cheaper ones; it is looked at again within ten minutes`
const COSTLY_RULES =
  'a policy that chooses it takes too many steps, and was stopped: whether it is chosen is not known; take a cheaper one'

/** What became of one object. */
export type Outcome =
  | {
      readonly row: Row
      /** that the row takes of memory, about */
      readonly bytes: number
      readonly failure?: never
      readonly isSkipped?: never
    }
  | {
      readonly failure: string
      /** there was no time or no room for it: it is looked at again */
      readonly isSkipped?: true
      readonly row?: never
    }

/** One kind of objects as a target takes them. Takes one object at a time, and never throws. */
export interface CompiledKind {
  readonly gvk: GroupVersionKind
  /** whether labels of namespaces decide about objects */
  readonly needsLabels: boolean
  /** @returns undefined for an object that is not chosen */
  take(object: object, namespace: NamespaceFacts | undefined): Outcome | undefined
}

/** A target with its profile, ready to be read. */
export interface CompiledTarget {
  readonly key: TargetKey
  /** that of its profile, or those that its rules name */
  readonly kinds: readonly CompiledKind[]
  /** what is worth knowing although it is no fault */
  readonly warnings: readonly ProfileFault[]
  /** whether it chooses namespaces by more than their names */
  readonly needsNamespaces: boolean
  /** of these namespaces those that are wanted, before any ceiling */
  namespaces(known: readonly NamespaceFacts[]): readonly string[]
}

export interface TargetToCompile {
  readonly key: TargetKey
  readonly spec: TargetSpec
  readonly profile: {
    readonly spec: KollectProfile['spec']
    readonly annotations?: Readonly<Record<string, string>> | undefined
  }
}

/**
 * Compiles a target once. Rules may name several kinds; the paths of the profile are taken of each of them.
 * @param time of its namespace; absent: all there is
 * @returns every mistake at once
 */
export function compileTarget(
  { key, spec, profile }: TargetToCompile,
  defaults: TargetDefaults = NO_DEFAULTS,
  time?: ExtractionTime,
):
  | { readonly target: CompiledTarget; readonly faults?: never }
  | { readonly faults: readonly ProfileFault[]; readonly target?: never } {
  const whole = withDefaults(spec, defaults)
  const chosen = { spec: whole, namespace: key.namespace === '' ? undefined : key.namespace }
  const faults: ProfileFault[] = []
  const warnings: ProfileFault[] = []
  const kinds: CompiledKind[] = []
  for (const gvk of kindsOf(spec, profile.spec.targetGVK)) {
    const { extractor, faults: found = [] } = compiledOnce(profile, gvk, defaults.scrubKeys)
    faults.push(...found)
    if (!extractor) continue
    warnings.push(...extractor.warnings)
    const selection = compileSelection(chosen, gvk)
    kinds.push({
      gvk,
      needsLabels: (spec.resourceRules ?? []).some(({ namespaceSelector }) => namespaceSelector !== undefined),
      take(object, namespace) {
        const began = performance.now()
        const late = (message: string) => lateOutcome(object, message)
        const isTimeLeft = () => time === undefined || time.isLeftFor(object)
        try {
          const isChosen = selection.chooses(
            object,
            namespace,
            () => isTimeLeft() && performance.now() - began <= MAX_RULES_MS,
          )
          if (isChosen === false) return undefined
          if (!isTimeLeft()) return late(NO_TIME)
          if (isChosen === 'late') return late(LONG_RULES)
          if (isChosen === 'costly') return { failure: failureText(object, { message: COSTLY_RULES }) }
          const { row, failure } = extractor.rowOf(object)
          // The machine may have been slow just then.
          if (!row) return failure.isLate ? late(failure.message) : { failure: failureText(object, failure) }
          const whole = { targetNamespace: key.namespace || row.namespace, targetName: key.name, ...row }
          return { row: whole, bytes: bytesOfRow(whole) }
        } finally {
          time?.spent(performance.now() - began, object)
        }
      },
    })
  }
  if (faults.length > 0) return { faults: once(faults) }
  const { needsNamespaces, namespaces } = compileSelection(chosen, profile.spec.targetGVK)
  return { target: { key, kinds, warnings: once(warnings), needsNamespaces, namespaces } }
}

type Compiled =
  | { readonly extractor: SharedExtractor; readonly faults?: never }
  | { readonly extractor?: never; readonly faults: readonly ProfileFault[] }

/** By the profile as it was read. */
const compiledProfiles = new WeakMap<KollectProfile['spec'], Map<string, Compiled>>()

/** What a profile makes of a kind is the same for all targets that name it. */
function compiledOnce(
  { spec, annotations }: TargetToCompile['profile'],
  gvk: GroupVersionKind,
  scrubKeys: readonly string[],
): Compiled {
  const known = compiledProfiles.get(spec) ?? new Map<string, Compiled>()
  compiledProfiles.set(spec, known)
  const key = JSON.stringify([kindText(gvk), annotations, scrubKeys])
  const before = known.get(key)
  if (before) return before
  const made = compileProfile({ metadata: { annotations }, spec: { ...spec, targetGVK: gvk } }, { scrubKeys })
  const compiled = made.extractor ? { extractor: new SharedExtractor(made.extractor) } : { faults: made.faults }
  known.set(key, compiled)
  return compiled
}

type Extractor = NonNullable<ReturnType<typeof compileProfile>['extractor']>

/** An object comes to all targets one after the other: its row is made once. */
class SharedExtractor {
  readonly #extractor: Extractor
  #last: WeakRef<object> | undefined
  #made: ReturnType<Extractor['row']> | undefined

  constructor(extractor: Extractor) {
    this.#extractor = extractor
  }

  get warnings(): readonly ProfileFault[] {
    return this.#extractor.warnings
  }

  rowOf(object: object): ReturnType<Extractor['row']> {
    if (this.#made && this.#last?.deref() === object) return this.#made
    this.#made = undefined
    this.#made = this.#extractor.row(object)
    this.#last = new WeakRef(object)
    return this.#made
  }
}

/** The last one: the same for all targets of a namespace that have no time left. */
let lastLate: { readonly object: WeakRef<object>; readonly message: string; readonly outcome: Outcome } | undefined

function lateOutcome(object: object, message: string): Outcome {
  if (lastLate?.message === message && lastLate.object.deref() === object) return lastLate.outcome
  const outcome: Outcome = { failure: failureText(object, { message }), isSkipped: true }
  lastLate = { object: new WeakRef(object), message, outcome }
  return outcome
}

/** A target's own list takes the place of the default; what the process excludes is always excluded. */
function withDefaults<Spec extends TargetSpec>(
  spec: Spec,
  { includedNamespaces, excludedNamespaces }: TargetDefaults,
): Spec {
  const included = spec.includedNamespaces?.length ? spec.includedNamespaces : [...includedNamespaces]
  const excluded = [...(spec.excludedNamespaces ?? []), ...excludedNamespaces]
  return {
    ...spec,
    ...(included.length > 0 && { includedNamespaces: included }),
    ...(excluded.length > 0 && { excludedNamespaces: excluded }),
  }
}

function kindsOf({ resourceRules = [] }: TargetSpec, ofProfile: GroupVersionKind): readonly GroupVersionKind[] {
  if (resourceRules.length === 0) return [ofProfile]
  return [...new Map(resourceRules.map(({ gvk }) => [kindText(gvk), gvk])).values()]
}

/** A kind as people write it, and one text for each: `apps/v1 Deployment`. */
export const kindText = ({ group = '', version, kind }: GroupVersionKind): string =>
  `${group === '' ? version : `${group}/${version}`} ${kind}`

const once = (faults: readonly ProfileFault[]): readonly ProfileFault[] => [
  ...new Map(faults.map((fault) => [`${fault.path} ${fault.message}`, fault])).values(),
]

/** Names the object, and holds nothing else of it. */
function failureText(object: unknown, { attribute, message }: { attribute?: string; message: string }): string {
  const { namespace, name = '' } = (object as { metadata?: { namespace?: string; name?: string } }).metadata ?? {}
  const where = namespace === undefined ? name : `${namespace}/${name}`
  return `${where}: ${attribute === undefined ? '' : `attribute ${attribute}: `}${message}`
}
