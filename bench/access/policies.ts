import { compilePolicy, type PolicyDocument, type PolicyObject } from '#access'
import { invariant } from '#model'

/** Policies as a large fleet has them: one per team, selectors of every sort, filters on what is shared. */
export function policyObject(index: number, group: string, selects: string): PolicyObject {
  const selectors = [
    { matchNames: [`${selects}-a`, `${selects}-b-*`] },
    { matchPattern: `^${selects}-[a-z]+-(east|west)-[0-9]+$` },
    { matchLabels: { team: selects, env: 'production' } },
    { matchPattern: `^(${selects}|shared-${index})-` },
  ]
  const selector = selectors[index % selectors.length]
  invariant(selector, 'the remainder is one of them')
  return {
    metadata: { name: `policy-${String(index).padStart(5, '0')}`, namespace: 'clusterpulse' },
    spec: {
      identity: { subjects: { groups: [group], users: [`${group}-lead@example.com`] }, priority: 1 + (index % 9999) },
      access: { effect: index % 10 === 0 ? 'Deny' : 'Allow' },
      scope: {
        clusters: {
          rules: [
            {
              selector,
              permissions: { view: true, viewMetrics: index % 2 === 0 },
              resources: [
                {
                  type: 'namespaces',
                  visibility: 'filtered',
                  filters: { names: { allowed: [`${group}-*`, 'shared'], denied: ['*-tmp'] } },
                },
                { type: 'operators', visibility: 'filtered', filters: { namespaces: { allowed: [`${group}-*`] } } },
                {
                  type: 'virtualmachines',
                  visibility: 'filtered',
                  filters: { fields: { phase: { denied: ['Failed*'] } } },
                },
              ],
            },
            { selector: { matchNames: [`${selects}-sandbox-?`] } },
          ],
        },
      },
      lifecycle: { validity: { notAfter: '2099-01-01T00:00:00Z' } },
    },
  }
}

export function compiled(object: PolicyObject): PolicyDocument {
  const { document, findings } = compilePolicy(object, { now: Date.now() })
  invariant(document, `the policies of a bench have no errors: ${JSON.stringify(findings)}`)
  return document
}
