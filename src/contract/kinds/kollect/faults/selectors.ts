import type { Fault } from '../../kind.ts'
import { faultIf, isRecord, listOf, recordOf, shown, textOf } from './json.ts'
import { nameProblem } from './names.ts'

const WORD = /^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)$/
const isWord = (text: string): boolean => text.length <= 63 && WORD.test(text)

function keyProblem(key: string): string | undefined {
  const slash = key.indexOf('/')
  const [prefix, name] = slash < 0 ? [undefined, key] : [key.slice(0, slash), key.slice(slash + 1)]
  if (isWord(name) && (prefix === undefined || nameProblem(prefix) === undefined)) return undefined
  return `${shown(key)} is not the name of a label, such as team or example.com/team`
}

const valueProblem = (value: unknown): string | undefined =>
  typeof value !== 'string' || value === '' || isWord(value)
    ? undefined
    : `${shown(value)} is not the value of a label: at most 63 letters, digits, "-", "_" and "."`

function demandFaults(path: string, demand: unknown): Fault[] {
  const { key, operator, values } = recordOf(demand)
  const given = listOf(values)
  const takesValues = operator === 'In' || operator === 'NotIn'
  const known = takesValues || operator === 'Exists' || operator === 'DoesNotExist'
  return [
    ...faultIf(`${path}.key`, textOf(key) !== undefined && keyProblem(key as string)),
    ...faultIf(
      `${path}.operator`,
      textOf(operator) !== undefined &&
        !known &&
        `is ${shown(operator as string)}: it must be In, NotIn, Exists or DoesNotExist`,
    ),
    ...faultIf(`${path}.values`, takesValues && given.length === 0 && `is empty: ${String(operator)} needs values`),
    ...faultIf(
      `${path}.values`,
      known && !takesValues && given.length > 0 && `must not be given: ${String(operator)} asks for the label alone`,
    ),
    ...given.flatMap((value, at) => faultIf(`${path}.values[${at}]`, valueProblem(value))),
  ]
}

/** What is wrong with `matchLabels` and `matchExpressions` of an object. */
export function selectorFaults(path: string, value: unknown): Fault[] {
  const { matchLabels, matchExpressions } = recordOf(value)
  return [
    ...Object.entries(recordOf(matchLabels)).flatMap(([key, label]) =>
      faultIf(`${path}.matchLabels`, keyProblem(key) ?? valueProblem(label)),
    ),
    ...listOf(matchExpressions).flatMap((demand, at) => demandFaults(`${path}.matchExpressions[${at}]`, demand)),
  ]
}

/** A selector that must ask for something. */
export function neededSelectorFaults(path: string, value: unknown): Fault[] {
  if (!isRecord(value)) return []
  const isEmpty = Object.keys(recordOf(value.matchLabels)).length === 0 && listOf(value.matchExpressions).length === 0
  return isEmpty
    ? [{ path, message: 'is empty, which would be every namespace: name labels, such as kubernetes.io/metadata.name' }]
    : selectorFaults(path, value)
}
