import type { AdmissionRule } from '#kinds'

/** Where an API server reaches the webhooks, and by which CA it knows them. */
export type Reached = { readonly caBundle: string } & (
  | { readonly url: string }
  | { readonly service: { readonly namespace: string; readonly name: string; readonly port?: number } }
)

const clientConfig = (reached: Reached, path: string): object => ({
  caBundle: Buffer.from(reached.caBundle).toString('base64'),
  ...('url' in reached ? { url: reached.url + path } : { service: { ...reached.service, path } }),
})

function webhook(rule: AdmissionRule, reached: Reached, path: string): object {
  return {
    name: rule.name,
    clientConfig: clientConfig(reached, path),
    rules: [
      {
        apiGroups: [rule.group],
        apiVersions: [...rule.versions],
        resources: [...rule.resources],
        operations: [...rule.operations],
        scope: rule.namespaced ? 'Namespaced' : 'Cluster',
      },
    ],
    // Who may accept members is decided here: without an answer nobody is accepted.
    failurePolicy: 'Fail',
    matchPolicy: 'Equivalent',
    sideEffects: 'None',
    admissionReviewVersions: ['v1'],
    timeoutSeconds: 10,
  }
}

/** The two objects that make an API server ask these rules. */
export function webhookConfigurations(name: string, rules: readonly AdmissionRule[], reached: Reached): object[] {
  const apiVersion = 'admissionregistration.k8s.io/v1'
  const of = (kind: string, webhooks: readonly object[]) => ({ apiVersion, kind, metadata: { name }, webhooks })
  const mutating = rules.filter(({ mutate }) => mutate)
  return [
    of(
      'MutatingWebhookConfiguration',
      mutating.map((rule) => webhook(rule, reached, `/mutate/${rule.name}`)),
    ),
    of(
      'ValidatingWebhookConfiguration',
      rules.map((rule) => webhook(rule, reached, `/validate/${rule.name}`)),
    ),
  ]
}
