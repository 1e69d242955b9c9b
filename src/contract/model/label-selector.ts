/** Whether an object with these labels is chosen. */
export type LabelTest = (labels: Readonly<Record<string, string>>) => boolean

const KEY = /^([A-Za-z0-9]([-A-Za-z0-9_./]*[A-Za-z0-9])?)$/
const SET = /^(\S+)\s+(in|notin)\s*\(([^()]*)\)$/
const EQUAL = /^([^=!\s]+)\s*(==|=|!=)\s*([^\s=!,()]*)$/

/**
 * A label selector as kubectl takes it: `app=web`, `tier!=cache`, `env in (prod,stage)`, `env notin (dev)`, `app`, `!app`; parts
 * separated by commas, all of which must hold.
 * @returns a sentence where a part cannot be read
 * @see Kubernetes, "Labels and Selectors": `!=` and `notin` also choose what has no such label
 */
export function parseLabelSelector(text: string): LabelTest | string {
  const tests: LabelTest[] = []
  for (const part of partsOf(text)) {
    const test = testOf(part)
    if (!test)
      return `${JSON.stringify(part.slice(0, 80))} is no label selector: write app=web, env in (prod,stage), app or !app`
    tests.push(test)
  }
  return (labels) => tests.every((test) => test(labels))
}

/** At commas, but not at those between parentheses. */
const partsOf = (text: string): readonly string[] =>
  text
    .split(/,(?![^(]*\))/)
    .map((part) => part.trim())
    .filter((part) => part !== '')

function testOf(part: string): LabelTest | undefined {
  const [, setKey = '', how, list = ''] = SET.exec(part) ?? []
  if (how !== undefined && KEY.test(setKey)) {
    const values = new Set(list.split(',').map((value) => value.trim()))
    return (labels) => values.has(labelOf(labels, setKey) ?? '\0') === (how === 'in')
  }
  const [, key = '', operator, value = ''] = EQUAL.exec(part) ?? []
  if (operator !== undefined && KEY.test(key))
    return (labels) => (labelOf(labels, key) === value) === (operator !== '!=')
  const isAbsent = part.startsWith('!')
  const name = isAbsent ? part.slice(1).trim() : part
  return KEY.test(name) ? (labels) => (labelOf(labels, name) === undefined) === isAbsent : undefined
}

/** A selector as objects hold it: metav1.LabelSelector. */
export interface LabelSelector {
  readonly matchLabels?: Readonly<Record<string, string>> | undefined
  readonly matchExpressions?:
    | readonly { readonly key: string; readonly operator: string; readonly values?: readonly string[] | undefined }[]
    | undefined
}

/** Whether all its demands are met; one that nobody knows is not. An empty selector chooses everything. */
export function selectsLabels(
  { matchLabels = {}, matchExpressions = [] }: LabelSelector,
  labels: Readonly<Record<string, string>>,
): boolean {
  return (
    Object.entries(matchLabels).every(([key, value]) => labelOf(labels, key) === value) &&
    matchExpressions.every(({ key, operator, values = [] }) => {
      const value = labelOf(labels, key)
      if (operator === 'Exists') return value !== undefined
      if (operator === 'DoesNotExist') return value === undefined
      const isNamed = value !== undefined && values.includes(value)
      // As Kubernetes has it: an object without the label is not "in", and passes "not in".
      return operator === 'In' ? isNamed : operator === 'NotIn' && !isNamed
    })
  )
}

const labelOf = (labels: Readonly<Record<string, string>>, key: string): string | undefined =>
  Object.hasOwn(labels, key) ? labels[key] : undefined
