import type { AdmissionRule } from '#kinds'

/** Where an API server reaches the webhooks, and by which CA it knows them, PEM; absent: that is written later. */
export type Reached = { readonly caBundle?: string } & (
  | { readonly url: string }
  | { readonly service: { readonly namespace: string; readonly name: string; readonly port?: number } }
)

/** One webhook, as far as they differ. */
interface Webhook {
  readonly name: string
  readonly path: string
  readonly rules: readonly object[]
  /** CEL: writes of which one is false are not asked about */
  readonly conditions: Readonly<Record<string, string>>
  /** whether a write is refused where there is no answer */
  readonly isNeeded: boolean
  /** it writes something down, but for writes that are not made */
  readonly hasEffects?: boolean
}

/** Of a webhook that is told of writes. */
const AUDIT = 'audit.clusterpulse.io'

/** Where a webhook is answered. */
export const webhookPath = (what: 'mutate' | 'validate', name: string): string =>
  name === AUDIT ? '/audit' : `/${what}/${name}`

/** The path at a Service is left to whoever answers: a manifest that names it would take it back whenever it is applied. */
const clientConfig = (reached: Reached, path: string): object => ({
  ...(reached.caBundle !== undefined && { caBundle: Buffer.from(reached.caBundle).toString('base64') }),
  ...('url' in reached ? { url: reached.url + path } : { service: { ...reached.service } }),
})

function webhook({ name, path, rules, conditions, isNeeded, hasEffects }: Webhook, reached: Reached): object {
  const matchConditions = Object.entries(conditions).map(([condition, expression]) => ({ name: condition, expression }))
  return {
    name,
    clientConfig: clientConfig(reached, path),
    rules,
    ...(matchConditions.length > 0 && { matchConditions }),
    failurePolicy: isNeeded ? 'Fail' : 'Ignore',
    matchPolicy: 'Equivalent',
    sideEffects: hasEffects ? 'NoneOnDryRun' : 'None',
    admissionReviewVersions: ['v1'],
    timeoutSeconds: isNeeded ? 10 : 3,
  }
}

export interface ConfigurationOptions {
  /** of both objects */
  readonly name: string
  readonly rules: readonly AdmissionRule[]
  readonly reached: Reached
  /** user name of the hub's own account, whose writes are not asked about: it must go on where its webhooks cannot be reached */
  readonly except?: string
  /** besides, `/audit` is told of these writes, whether it answers or not */
  readonly audited?: { readonly rules: readonly object[]; readonly condition: string }
}

/** The two objects that make an API server ask these rules. */
export function webhookConfigurations({ name, rules, reached, except, audited }: ConfigurationOptions): object[] {
  const apiVersion = 'admissionregistration.k8s.io/v1'
  const of = (kind: string, webhooks: readonly Webhook[]) => ({
    ...{ apiVersion, kind, metadata: { name } },
    webhooks: webhooks.map((one) => webhook(one, reached)),
  })
  const others = { ...(except && { 'not-the-hub': `request.userInfo.username != ${JSON.stringify(except)}` }) }
  const asked = (rule: AdmissionRule, what: 'mutate' | 'validate'): Webhook => ({
    name: rule.name,
    path: webhookPath(what, rule.name),
    rules: [
      {
        apiGroups: [rule.group],
        apiVersions: [...rule.versions],
        resources: [...rule.resources],
        operations: [...rule.operations],
        scope: rule.namespaced ? 'Namespaced' : 'Cluster',
      },
    ],
    conditions: { ...others, ...(rule.only && { [rule.only.name]: rule.only.expression }) },
    // Who may accept members is decided here: without an answer nobody is accepted.
    isNeeded: !rule.isOptional,
  })
  const told: Webhook[] = audited
    ? [
        {
          ...{
            name: AUDIT,
            path: webhookPath('validate', AUDIT),
            rules: audited.rules,
            isNeeded: false,
            hasEffects: true,
          },
          conditions: { ...others, 'of-members': audited.condition },
        },
      ]
    : []
  return [
    of(
      'MutatingWebhookConfiguration',
      rules.filter(({ mutate }) => mutate).map((rule) => asked(rule, 'mutate')),
    ),
    of('ValidatingWebhookConfiguration', [...rules.map((rule) => asked(rule, 'validate')), ...told]),
  ]
}
