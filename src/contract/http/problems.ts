/** Every code that an answer of 400 and more can carry, with its status. Codes are stable: programs compare them. */
export const problemStatus = {
  bad_request: 400,
  invalid_parameter: 400,
  invalid_cursor: 400,
  metric_required: 400,
  unknown_metric: 400,
  invalid_range: 400,
  too_many_points: 400,
  too_many_series: 400,
  query_refused: 400,
  unauthenticated: 401,
  host_refused: 403,
  cross_site_refused: 403,
  history_filtered: 403,
  route_not_found: 404,
  cluster_not_found: 404,
  node_not_found: 404,
  method_not_allowed: 405,
  body_too_large: 413,
  unexpected: 500,
  history_off: 501,
  promql_off: 501,
  history_failed: 502,
  state_loading: 503,
  store_unavailable: 503,
  too_many_streams: 503,
  request_timeout: 503,
  history_unavailable: 503,
  history_timeout: 504,
} as const

export type ProblemCode = keyof typeof problemStatus

export const isProblemCode = (code: string): code is ProblemCode => Object.hasOwn(problemStatus, code)
