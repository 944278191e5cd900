{{- define "policyengine.labels" -}}
app.kubernetes.io/name: policyengine
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/part-of: policyengine
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}
{{- define "policyengine.selector" -}}
app.kubernetes.io/name: policyengine
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}
