import type { ApiObject } from '#apiserver'
import { monitorAccessPolicy } from '#kinds'
import type { DeclaredOnce } from './declared-once.ts'
import { HUB_NAMESPACE } from './object-names.ts'

const POLICIES = {
  group: monitorAccessPolicy.group,
  version: monitorAccessPolicy.version,
  plural: monitorAccessPolicy.plural,
}

/** Three people's policies for the demo, so that "what does … see?" has something to show. Made once; changes stay. */
export async function declareDemoPolicies(declared: DeclaredOnce): Promise<void> {
  for (const object of demoPolicies) await declared.make(POLICIES, object)
}

const policy = (name: string, spec: Record<string, unknown>): ApiObject => ({
  apiVersion: monitorAccessPolicy.apiVersion,
  kind: monitorAccessPolicy.kind,
  metadata: { name, namespace: HUB_NAMESPACE, labels: { 'app.kubernetes.io/part-of': 'clusterpulse-demo' } },
  spec,
})

const demoPolicies: readonly ApiObject[] = [
  policy('on-call', {
    identity: { subjects: { groups: ['on-call'] }, priority: 200 },
    access: { effect: 'Allow' },
    scope: {
      clusters: { rules: [{ selector: { matchNames: ['*'] }, permissions: { view: true, viewMetrics: true } }] },
    },
  }),
  policy('developers', {
    identity: { subjects: { groups: ['developers'], users: ['alice'] }, priority: 100 },
    access: { effect: 'Allow' },
    scope: {
      clusters: {
        rules: [
          {
            selector: { matchLabels: { environment: 'staging' } },
            permissions: { view: true, viewMetrics: true },
            resources: ['deployment', 'node-pressure', 'certificate'].map((type) => ({ type, visibility: 'all' })),
          },
          {
            selector: { matchLabels: { environment: 'production' } },
            permissions: { view: true },
            resources: [
              {
                type: 'namespaces',
                visibility: 'filtered',
                filters: { names: { denied: ['kube-*', 'openshift*'] } },
              },
              {
                type: 'nodes',
                visibility: 'filtered',
                filters: { names: { denied: ['*-control-*'] } },
              },
              {
                type: 'deployment',
                visibility: 'filtered',
                filters: { namespaces: { allowed: ['checkout', 'payments', 'catalog'] } },
              },
            ],
          },
        ],
      },
    },
  }),
  policy('contractors-not-in-production', {
    identity: { subjects: { groups: ['contractors'] }, priority: 300 },
    access: { effect: 'Deny' },
    scope: { clusters: { rules: [{ selector: { matchLabels: { environment: 'production' } } }] } },
  }),
]
