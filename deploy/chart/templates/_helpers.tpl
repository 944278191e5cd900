{{/* Every object is called after the release; a part beside the scheduler is the release with the part's name behind. */}}
{{- define "policyengine.name" -}}
{{ .root.Release.Name }}{{ with .part }}-{{ . }}{{ end }}
{{- end }}

{{- define "policyengine.selector" -}}
app.kubernetes.io/name: policyengine{{ with .part }}-{{ . }}{{ end }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
{{- end }}

{{- define "policyengine.metadata" -}}
name: {{ include "policyengine.name" . }}
namespace: {{ .root.Release.Namespace }}
labels:
  {{- include "policyengine.selector" . | nindent 2 }}
  app.kubernetes.io/part-of: policyengine
  app.kubernetes.io/managed-by: {{ .root.Release.Service }}
{{- end }}

{{/* The scheduler's configuration: what the release says, over what follows from its name and namespace. */}}
{{- define "policyengine.configuration" -}}
{{- $ours := dict "policies" (dict "namespace" (printf "%s-policies" .Release.Name)) }}
{{- $lease := dict "resourceName" .Release.Name "resourceNamespace" .Release.Namespace }}
{{- $_ := set $ours "leaderElection" $lease }}
{{- if .Values.tlsSecret }}
{{- $tls := dict "tlsCertFile" "/etc/policyengine-tls/tls.crt" "tlsPrivateKeyFile" "/etc/policyengine-tls/tls.key" }}
{{- $_ := set $ours "endpoints" $tls }}
{{- end }}
{{- toYaml (mergeOverwrite $ours (deepCopy .Values.configuration)) }}
{{- end }}

{{/* A Deployment: root, part, values (replicas and resources), args, port, probes, and volumes with their mounts. */}}
{{- define "policyengine.deployment" -}}
{{- $given := .root.Values }}
apiVersion: apps/v1
kind: Deployment
metadata:
  {{- include "policyengine.metadata" . | nindent 2 }}
  {{- with $given.annotations }}
  annotations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
spec:
  replicas: {{ .values.replicas }}
  # So that an upgrade needs no node beside those that the replicas are on.
  strategy:
    rollingUpdate: {maxSurge: 0, maxUnavailable: 1}
  selector:
    matchLabels:
      {{- include "policyengine.selector" . | nindent 6 }}
  template:
    metadata:
      labels:
        {{- include "policyengine.selector" . | nindent 8 }}
        {{- with $given.podLabels }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
      {{- with merge (dict) (.podAnnotations | default dict) $given.podAnnotations }}
      annotations:
        {{- toYaml . | nindent 8 }}
      {{- end }}
    spec:
      serviceAccountName: {{ include "policyengine.name" . }}
      schedulerName: {{ $given.schedulerName }}
      {{- with $given.priorityClassName }}
      priorityClassName: {{ . }}
      {{- end }}
      {{- with $given.imagePullSecrets }}
      imagePullSecrets:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with $given.nodeSelector }}
      nodeSelector:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with $given.tolerations }}
      tolerations:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      affinity:
      {{- if $given.affinity }}
        {{- toYaml $given.affinity | nindent 8 }}
      {{- else }}
        podAntiAffinity:
          preferredDuringSchedulingIgnoredDuringExecution:
            - weight: 100
              podAffinityTerm:
                topologyKey: kubernetes.io/hostname
                labelSelector:
                  matchLabels:
                    {{- include "policyengine.selector" . | nindent 20 }}
      {{- end }}
      securityContext:
        runAsNonRoot: true
        runAsUser: 65532
        runAsGroup: 65532
        fsGroup: 65532
        seccompProfile:
          type: RuntimeDefault
      containers:
        - name: {{ .part | default "policyengine" }}
          image: "{{ $given.image.repository }}:{{ $given.image.tag | default .root.Chart.AppVersion }}"
          imagePullPolicy: {{ $given.image.pullPolicy }}
          args:
            {{- toYaml .args | nindent 12 }}
          {{- with .port }}
          ports:
            - {{ toYaml . | nindent 14 | trim }}
          {{- end }}
          {{- if not .part }}
          env:
            - {name: POD_NAME, valueFrom: {fieldRef: {fieldPath: metadata.name}}}
            - {name: POD_NAMESPACE, valueFrom: {fieldRef: {fieldPath: metadata.namespace}}}
          {{- end }}
          {{- with .probes }}
          {{- toYaml . | nindent 10 }}
          {{- end }}
          resources:
            {{- toYaml .values.resources | nindent 12 }}
          securityContext:
            allowPrivilegeEscalation: false
            readOnlyRootFilesystem: true
            capabilities:
              drop: [ALL]
          {{- with concat (.mounts | default list) $given.extraVolumeMounts }}
          volumeMounts:
            {{- toYaml . | nindent 12 }}
          {{- end }}
      {{- with concat (.volumes | default list) $given.extraVolumes }}
      volumes:
        {{- toYaml . | nindent 8 }}
      {{- end }}
{{- end }}

{{/* What a part needs beside its Deployment: a budget where it has replicas, and who may reach its port, if it has one. */}}
{{- define "policyengine.around" -}}
{{- if and .root.Values.podDisruptionBudget.enabled (gt (int .values.replicas) 1) }}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  {{- include "policyengine.metadata" . | nindent 2 }}
spec:
  maxUnavailable: 1
  selector:
    matchLabels:
      {{- include "policyengine.selector" . | nindent 6 }}
{{- end }}
{{- if .port }}
---
apiVersion: v1
kind: Service
metadata:
  {{- include "policyengine.metadata" . | nindent 2 }}
spec:
  {{- if not .part }}
  clusterIP: None
  {{- end }}
  selector:
    {{- include "policyengine.selector" . | nindent 4 }}
  ports:
    - name: {{ .port.name }}
      port: {{ .servicePort | default .port.containerPort }}
      targetPort: {{ .port.name }}
{{- end }}
{{- if .root.Values.networkPolicy.enabled }}
---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata:
  {{- include "policyengine.metadata" . | nindent 2 }}
spec:
  podSelector:
    matchLabels:
      {{- include "policyengine.selector" . | nindent 6 }}
  policyTypes: [Ingress]
  {{- if .port }}
  ingress:
    - ports:
        - port: {{ .port.name }}
      {{- with .from }}
      from:
        {{- toYaml . | nindent 8 }}
      {{- end }}
  {{- end }}
{{- end }}
{{- end }}

{{/* A role and who has it: root, part, name (of the role), rules, and namespace, without which it is a ClusterRole; account,
without which it is the part's; unbound, where nobody has it. */}}
{{- define "policyengine.role" -}}
{{- $kind := ternary "Role" "ClusterRole" (hasKey . "namespace") }}
{{- $labels := include "policyengine.selector" . }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: {{ $kind }}
metadata:
  name: {{ .name }}
  {{- with .namespace }}
  namespace: {{ . }}
  {{- end }}
  labels:
    {{- $labels | nindent 4 }}
rules:
  {{- toYaml .rules | nindent 2 }}
{{- if not .unbound }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: {{ $kind }}Binding
metadata:
  name: {{ .name }}
  {{- with .namespace }}
  namespace: {{ . }}
  {{- end }}
  labels:
    {{- $labels | nindent 4 }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: {{ $kind }}
  name: {{ .name }}
subjects:
  - kind: ServiceAccount
    name: {{ .account | default (include "policyengine.name" .) }}
    namespace: {{ .root.Release.Namespace }}
{{- end }}
{{- end }}

{{- define "policyengine.account" -}}
---
apiVersion: v1
kind: ServiceAccount
metadata:
  {{- include "policyengine.metadata" . | nindent 2 }}
{{- end }}
