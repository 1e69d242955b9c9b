import { type PolicyDocument, policiesOfManifest } from '#access'
import { allow } from '../../src/pipeline/api/test/policies.ts'

/** These clusters and no others, for one person. */
export const clustersFor = (user: string, clusters: readonly string[]): PolicyDocument =>
  allow(user, { users: [user], clusters })

/** What developers may see of production, and all of the stage. */
export const developers = `
apiVersion: clusterpulse.io/v1alpha1
kind: MonitorAccessPolicy
metadata: { name: developers, namespace: clusterpulse }
spec:
  identity: { subjects: { users: [alice], groups: [developers] }, priority: 100 }
  access: { effect: Allow, enabled: true }
  scope:
    clusters:
      default: none
      rules:
        - selector: { matchPattern: ^eu-prod- }
          permissions: { view: true }
          resources:
            - { type: namespaces, visibility: filtered, filters: { names: { allowed: [payments, shop] } } }
            - { type: operators, visibility: none }
            - { type: pods, visibility: none }
        - selector: { matchLabels: { env: stage } }
          permissions: { view: true, viewMetrics: true }
`

const manifest = `
apiVersion: clusterpulse.io/v1alpha1
kind: MonitorAccessPolicy
metadata: { name: no-contractors, namespace: clusterpulse }
spec:
  identity: { subjects: { groups: [contractors] }, priority: 900 }
  access: { effect: Deny, enabled: true }
  scope: { clusters: { default: none, rules: [{ selector: { matchPattern: ^eu-prod- }, permissions: { view: true } }] } }
---
apiVersion: clusterpulse.io/v1alpha1
kind: MonitorAccessPolicy
metadata: { name: on-call, namespace: clusterpulse }
spec:
  identity: { subjects: { groups: [on-call] }, priority: 500 }
  access: { effect: Allow, enabled: true }
  scope:
    clusters: { default: none, rules: [{ selector: { matchPattern: .* }, permissions: { view: true, viewMetrics: true } }] }
---
apiVersion: clusterpulse.io/v1alpha1
kind: MonitorAccessPolicy
metadata: { name: audit-week, namespace: clusterpulse }
spec:
  identity: { subjects: { users: [alice, olga@example.com] }, priority: 300 }
  access: { effect: Allow, enabled: true }
  scope:
    clusters: { default: none, rules: [{ selector: { matchPattern: .* }, permissions: { view: true, viewMetrics: true } }] }
  lifecycle: { validity: { notBefore: "2031-12-01T00:00:00Z", notAfter: "2031-12-08T00:00:00Z" } }
---
${developers}
---
apiVersion: clusterpulse.io/v1alpha1
kind: MonitorAccessPolicy
metadata: { name: everybody, namespace: team-b }
spec:
  identity: { subjects: { groups: [everybody] }, priority: 10 }
  access: { effect: Allow, enabled: true }
  scope: { clusters: { default: allow, rules: [] } }
`

/** Policies over the fleet of `demoFleet`; of one of them, a store holds what cannot be read. */
export function demoPolicies(now: number): readonly PolicyDocument[] {
  const { policies, findings } = policiesOfManifest(manifest, { now })
  const errors = findings.filter(({ finding }) => finding.severity === 'error')
  if (errors.length > 0) throw new Error(JSON.stringify(errors))
  const [first] = policies
  if (!first) throw new Error('there is no policy')
  const broken: PolicyDocument = {
    ...first,
    policy_name: 'broken',
    effect: 'Allow',
    priority: 90,
    groups: ['developers'],
    cluster_rules: [
      { cluster_selector: { matchPattern: '^eu(' }, permissions: { view: true, viewMetrics: false }, resources: null },
    ],
  }
  return [...policies, broken]
}
