import type { Fault } from '../../kind.ts'
import { MAX_EXPRESSION_LETTERS } from '../names.ts'
import { faultIf, type Json, lettersOf, listOf, recordOf, textOf } from './json.ts'
import type { KollectKnown } from './known.ts'
import { listFaults, nameFaults, namespaceProblem } from './names.ts'
import { kindFaults, tooLong } from './profile.ts'
import { neededSelectorFaults, selectorFaults } from './selectors.ts'

function commonFaults(spec: Json, known: KollectKnown): Fault[] {
  const rules = listOf(spec.resourceRules)
  const letters = lettersOf(rules.map((rule) => recordOf(rule).matchPolicy))
  const isLong = letters > MAX_EXPRESSION_LETTERS
  return [
    ...listFaults('spec.includedNamespaces', spec.includedNamespaces, namespaceProblem),
    ...listFaults('spec.excludedNamespaces', spec.excludedNamespaces, namespaceProblem),
    ...selectorFaults('spec.namespaceExcludeSelector', spec.namespaceExcludeSelector),
    ...faultIf('spec.resourceRules', isLong && tooLong(letters)),
    ...rules.flatMap((rule, at) =>
      ruleFaults(`spec.resourceRules[${at}]`, rule, isLong ? undefined : known.predicateProblem),
    ),
  ]
}

function ruleFaults(path: string, value: unknown, problem: KollectKnown['predicateProblem']): Fault[] {
  const rule = recordOf(value)
  const policy = textOf(rule.matchPolicy)
  return [
    ...kindFaults(`${path}.gvk`, rule.gvk),
    ...selectorFaults(`${path}.namespaceSelector`, rule.namespaceSelector),
    ...selectorFaults(path, rule),
    ...faultIf(`${path}.matchPolicy`, policy !== undefined && policy.trim() !== '' && problem?.(policy)),
  ]
}

/** Everything wrong with the spec of a target. */
export function targetFaults(spec: Json, _: Json, known: KollectKnown): Fault[] {
  return [
    ...nameFaults('spec.profileRef', spec.profileRef),
    ...selectorFaults('spec.namespaceSelector', spec.namespaceSelector),
    ...selectorFaults('spec.labelSelector', spec.labelSelector),
    ...listFaults('spec.names', spec.names),
    ...commonFaults(spec, known),
  ]
}

/** Everything wrong with the spec of a target of the cluster. */
export function clusterTargetFaults(spec: Json, _: Json, known: KollectKnown): Fault[] {
  return [
    ...profileRefFaults(spec.profileRef),
    ...neededSelectorFaults('spec.namespaceSelector', spec.namespaceSelector),
    ...commonFaults(spec, known),
  ]
}

/** A profile that is named with its namespace. */
export function profileRefFaults(value: unknown): Fault[] {
  const { name, namespace } = recordOf(value)
  const text = textOf(namespace)
  return [
    ...nameFaults('spec.profileRef.name', name),
    ...faultIf('spec.profileRef.namespace', text !== undefined && namespaceProblem(text)),
  ]
}
