import type { ReactNode } from 'react'
import { filterLines, permissionText, type RuleView, selectorText } from '../../model/access.ts'
import { Filters } from './parts.tsx'

interface RulesProps {
  readonly rules: readonly RuleView[]
  readonly effect: string
  readonly defaultAccess: string
}

/** The rules of a policy in words, in the order in which they are tried: the first that selects a cluster counts. */
export function Rules({ rules, effect, defaultAccess }: RulesProps): ReactNode {
  const denies = effect !== 'Allow'
  return (
    <ol className="rules">
      {rules.map((rule, place) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: a rule has no name but its place
        <li key={place}>
          <p>
            <span className="rule-place">Rule {place + 1}</span> On <b>{selectorText(rule.selector)}</b>:{' '}
            {denies ? <Denied filters={rule.filters} /> : `may ${permissionText(rule.permissions)}.`}
          </p>
          {!denies && Object.keys(rule.filters).length > 0 && <Filters filters={rule.filters} rest="all are shown" />}
        </li>
      ))}
      {!denies && defaultAccess === 'allow' && (
        <li>
          <p>
            <span className="rule-place">Default</span> On every cluster that no rule of any policy selects: may see it,
            without usage and history.
          </p>
        </li>
      )}
      {rules.length === 0 && defaultAccess !== 'allow' && (
        <li>
          <p>It has no rules, so it decides nothing.</p>
        </li>
      )}
    </ol>
  )
}

function Denied({ filters }: { filters: RuleView['filters'] }): ReactNode {
  const types = Object.keys(filters)
  if (types.length === 0) return 'denies the whole cluster.'
  const narrowed = Object.values(filters).some((filter) => filterLines(filter).length > 1)
  return `denies ${types.join(', ')} there${narrowed ? ', whatever filters say' : ''}.`
}
