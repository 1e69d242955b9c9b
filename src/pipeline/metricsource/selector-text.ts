import type { LabelSelector } from './draft.ts'
import { type Findings, suggestionFor } from './findings.ts'

const NAME = /^[A-Za-z0-9](?:[\w.-]{0,61}[A-Za-z0-9])?$/
const PREFIX = /^[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?$/
const OPERATORS = ['In', 'NotIn', 'Exists', 'DoesNotExist']

/** The selector as the API takes it: labels by name, then the expressions; undefined where it selects everything. */
export function selectorText(selector: LabelSelector, findings: Findings): string | undefined {
  const at = 'spec.source.labelSelector'
  const labels = selector.labels.toSorted(([a], [b]) => (a < b ? -1 : 1))
  const parts = labels.map(([key, value]) => {
    checkKey(key, `${at}.matchLabels`, findings)
    checkValue(value, `${at}.matchLabels[${JSON.stringify(key.slice(0, 80))}]`, findings)
    return `${key}=${value}`
  })
  for (const { at: place, ...expression } of selector.expressions)
    parts.push(expressionText(expression, place, findings))
  return parts.length > 0 ? parts.join(',') : undefined
}

type Expression = Omit<LabelSelector['expressions'][number], 'at'>

function expressionText({ key, operator, values }: Expression, at: string, findings: Findings): string {
  checkKey(key, `${at}.key`, findings)
  for (const [i, value] of values.entries()) checkValue(value, `${at}.values[${i}]`, findings)
  if (operator === 'Exists' || operator === 'DoesNotExist') {
    if (values.length > 0) findings.warning('selector_values_ignored', `${at}.values`, `${operator} looks at no values`)
    return operator === 'Exists' ? key : `!${key}`
  }
  if (operator === 'In' || operator === 'NotIn') {
    if (values.length === 0)
      findings.error('selector_values_missing', `${at}.values`, `${operator} needs at least one value`)
    return `${key} ${operator.toLowerCase()} (${values.join(',')})`
  }
  const message = `${JSON.stringify(operator)} is none of ${OPERATORS.join(', ')}`
  if (operator !== '')
    findings.error('selector_operator_unknown', `${at}.operator`, message, suggestionFor(operator, OPERATORS))
  return ''
}

function checkKey(key: string, at: string, findings: Findings): void {
  const slash = key.indexOf('/')
  const isGood = NAME.test(key.slice(slash + 1)) && (slash < 0 || PREFIX.test(key.slice(0, slash)))
  if (!isGood && key !== '')
    findings.error('selector_label_invalid', at, `${JSON.stringify(key.slice(0, 80))} is no name of a label`)
}

function checkValue(value: string, at: string, findings: Findings): void {
  if (value !== '' && !NAME.test(value))
    findings.error('selector_value_invalid', at, `${JSON.stringify(value)} is no value of a label`)
}
