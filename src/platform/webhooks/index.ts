/**
 * Admission rules and conversions for a hub on Kubernetes: the same functions that the embedded API runs in process, behind
 * HTTPS as its API server asks them (admission.k8s.io/v1, apiextensions.k8s.io/v1).
 *
 *   rule.mutate                     → /mutate/<rule>    a JSON patch
 *   rule.rights, reads, faults      → /validate/<rule>  allowed or not; rights by SubjectAccessReview, as whoever writes
 *   converters                      → /convert          objects in another version
 *   onWrite                         → /audit            told who writes what, and always allowed
 */
export { type ConfigurationOptions, type Reached, webhookConfigurations, webhookPath } from './configuration.ts'
export type { ReviewRequest } from './review.ts'
export { listenWebhooks, type WebhookListener, type WebhookOptions, type WebhookTls } from './server.ts'
