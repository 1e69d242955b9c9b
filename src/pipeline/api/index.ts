/**
 * The HTTP API: every read passes the caller's access view, is answered from memory, and is encoded once per state.
 *
 *   request → who asks (#identity) → how much they may → what they see (#access) → route → answer → audit
 *   state → access view → view (kept per cluster state) → body (kept per question, version and sort of principal) → answer
 *   events → coalesced → one frame per subscription → every stream of it
 *
 * /api/v1 speaks the documented documents, /api/v2 base units in pages, /api/v1/stream tells of changes. The page is served
 * beside it. Without a sign-in method it serves loopback only.
 */
export { apiServer } from './server.ts'
export type {
  ApiConfig,
  ApiOptions,
  ApiServer,
  RateLimit,
  RegisteredRoute,
  ServedMembers,
  SourceTrial,
  TlsConfig,
} from './types.ts'
