import type { ConfigReader } from '#runtime'

/** Where a process answers the reviews of an API server. */
export interface WebhooksConfig {
  readonly host: string
  readonly port: number
  /** of the Service in our namespace that the API server asks */
  readonly serviceName: string
  /** further names and addresses of the certificate */
  readonly names: readonly string[]
}

/** What the API server asks about, and what tells it to. */
const ABOUT = {
  hub: 'the API server of the hub asks this process what members may be and who may accept them, as the component `members` of deploy/ tells it to',
  agent:
    'the API server of the cluster asks the agent whether objects of inventory can be used, as deploy/inventory tells it to; without an answer it takes them',
} as const

/** @returns undefined: the API server asks nobody */
export function webhooks(read: ConfigReader, who: keyof typeof ABOUT): WebhooksConfig | undefined {
  const isOn = read.flag('WEBHOOKS_ENABLED', { default: false, meaning: ABOUT[who] })
  const config: WebhooksConfig = {
    host: read.text('WEBHOOKS_HOST', { default: '0.0.0.0', meaning: 'address the webhooks are served on' }),
    port: read.integer('WEBHOOKS_PORT', {
      default: 9444,
      min: 1024,
      raise: true,
      max: 65535,
      meaning: 'port of the webhooks; TLS, with a certificate that we make and renew',
    }),
    serviceName: read.text('WEBHOOKS_SERVICE_NAME', {
      default: 'clusterpulse-webhooks',
      meaning: 'the API server verifies the certificate for <this>.<NAMESPACE>.svc',
    }),
    names: read.list('WEBHOOKS_NAMES', {
      meaning: 'further names and addresses of that certificate, for an API server that is told a URL instead',
    }),
  }
  return isOn ? config : undefined
}
