import type { GroupVersionKind, KollectClusterTargetSpec, KollectTargetSpec } from '#kinds'
import { type LabelSelector, selectsLabels } from '#model'
import { Expressions } from './cel/expression.ts'
import { BudgetFault, ExtractionFault } from './fault.ts'
import { isFields, Scrubber } from './scrub.ts'

/** A namespace, as far as targets choose by it. */
export interface NamespaceFacts {
  readonly name: string
  readonly labels: Readonly<Record<string, string>>
  readonly annotations?: Readonly<Record<string, string>> | undefined
}

/** Which namespaces a target wants, and which objects in them. Never throws. */
export interface Selection {
  /** whether it chooses namespaces by more than their names: then all of them must be known */
  readonly needsNamespaces: boolean
  /** of these namespaces those that are wanted, before any ceiling */
  namespaces(known: readonly NamespaceFacts[]): readonly string[]
  /**
   * @param namespace of the object; undefined where nothing is known of it
   * @param isLeft whether there is time for one more expression
   */
  chooses(object: unknown, namespace: NamespaceFacts | undefined, isLeft?: () => boolean): Choice
}

/** Whether an object is chosen, or why that is not known: nobody had time for an expression that decides, or it takes too many steps. */
export type Choice = boolean | 'late' | 'costly'

type TargetSpec = KollectTargetSpec | KollectClusterTargetSpec
type Rule = NonNullable<TargetSpec['resourceRules']>[number]
type Test = (object: Fields, labels: Labels, namespace: NamespaceFacts | undefined, isLeft: () => boolean) => Choice
type Fields = Readonly<Record<string, unknown>>
type Labels = Readonly<Record<string, string>>

/** Label of objects and namespaces: whether they are collected. */
export const WATCH = 'kollect.dev/watch'
/** Annotation of namespaces that says the same. */
export const NAMESPACE_WATCH = 'kollect.dev/namespace-watch'
/** Where objects without a namespace count as if they lived. */
export const HOME_OF_CLUSTER_OBJECTS = 'default'

/**
 * Compiles what a target chooses.
 * @param target.namespace its own: what it reads when it says nothing; undefined for a target of the cluster
 * @param gvk kind of its profile
 */
export function compileSelection(
  { spec, namespace }: { readonly spec: TargetSpec; readonly namespace: string | undefined },
  gvk: GroupVersionKind,
): Selection {
  const rules = spec.resourceRules ?? []
  const tests = rules.length > 0 ? rules.map((rule) => ruleTest(rule, gvk)) : [plainTest(spec)]
  const mustOptIn = 'watchMode' in spec && spec.watchMode === 'OptIn'
  return {
    needsNamespaces: spec.namespaceSelector !== undefined || spec.namespaceExcludeSelector !== undefined,
    namespaces: (known) => known.filter((one) => wants(spec, namespace, one)).map(({ name }) => name),
    chooses: (object, of, isLeft = () => true) => {
      if (!isFields(object) || !isFields(object.metadata)) return false
      const labels = isFields(object.metadata.labels) ? (object.metadata.labels as Labels) : {}
      if (!isWatched(labels, of, mustOptIn)) return false
      let is: Choice = false
      for (const test of tests) {
        const own = test(object, labels, of, isLeft)
        if (own === true) return true
        if (is !== 'late' && own !== false) is = own
      }
      return is
    },
  }
}

/** Includes and selector intersect; excludes win. Who says nothing reads the own namespace, not all of the cluster. */
function wants(spec: TargetSpec, own: string | undefined, { name, labels }: NamespaceFacts): boolean {
  const { includedNamespaces = [], excludedNamespaces = [], namespaceSelector, namespaceExcludeSelector } = spec
  const isSilent = includedNamespaces.length === 0 && namespaceSelector === undefined
  const isIn = isSilent ? name === own : includedNamespaces.length === 0 || includedNamespaces.includes(name)
  return (
    isIn &&
    (namespaceSelector === undefined || selects(namespaceSelector, labels)) &&
    !excludedNamespaces.includes(name) &&
    !(namespaceExcludeSelector !== undefined && selects(namespaceExcludeSelector, labels))
  )
}

/** The first that says something counts: the object, then its namespace, where "disabled" wins. */
function isWatched(labels: Labels, namespace: NamespaceFacts | undefined, mustOptIn: boolean): boolean {
  const own = Object.hasOwn(labels, WATCH) ? labels[WATCH] : undefined
  if (own === 'disabled' || own === 'enabled') return own === 'enabled'
  const said = [namespace?.labels[WATCH], namespace?.annotations?.[NAMESPACE_WATCH]]
  if (said.includes('disabled')) return false
  return !mustOptIn || said.includes('enabled')
}

function plainTest(spec: TargetSpec): Test {
  const { labelSelector, names = [] } =
    'profileRef' in spec && 'labelSelector' in spec ? spec : (spec as KollectTargetSpec)
  return ({ metadata }, labels) =>
    (labelSelector === undefined || selects(labelSelector, labels)) &&
    (names.length === 0 || names.includes(String((metadata as Fields).name)))
}

/** All that a rule says must hold. One for another kind holds for nothing. */
function ruleTest(
  { gvk, namespaceSelector, matchPolicy, ...own }: Rule,
  { group = '', version, kind }: GroupVersionKind,
): Test {
  if ((gvk.group ?? '') !== group || gvk.version !== version || gvk.kind !== kind) return () => false
  const policy =
    matchPolicy === undefined ? undefined : compilePredicate(matchPolicy, group === '' && kind === 'Secret')
  return (object, labels, namespace, isLeft) => {
    if (namespaceSelector !== undefined && !selects(namespaceSelector, namespace?.labels ?? {})) return false
    if (!selects(own, labels)) return false
    if (policy === undefined) return true
    return isLeft() ? policy(object) : 'late'
  }
}

const selects = (selector: LabelSelector, labels: Labels): boolean => selectsLabels(selector, labels)

/** One for all: it has one object at a time. */
let scrubberOfPolicies: Scrubber | undefined

/**
 * What fails is no match; of what was stopped it is not known. Secrets are out of its sight too: whether an object has a row would
 * else tell of them.
 */
function compilePredicate(text: string, isSecret: boolean): (object: Fields) => Choice {
  const expressions = new Expressions()
  const compiled = expressions.compile(text)
  if (typeof compiled === 'string') return () => false
  scrubberOfPolicies ??= new Scrubber()
  const scrubber = scrubberOfPolicies
  return (object) => {
    scrubber.enter(object, isSecret)
    try {
      return compiled.evaluate(expressions.project(object, scrubber.view, (value) => scrubber.deep(value))) === true
    } catch (error) {
      if (error instanceof BudgetFault) return error.isLate ? 'late' : 'costly'
      if (error instanceof ExtractionFault) return false
      throw error
    }
  }
}
