"""The shapes of params, results and what they contain, by revision.

Generated from the official JSON schemas by `tests/spec/generate_shapes.py`: don't edit.

A key is the name of a type, `>` and a method for its params, or `<` and a method for its result. A
value has the first revision with a shape, and the shape in the language of `_shapes.py`: empty if
the revision has none any more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["SHAPES"]

# fmt: off
SHAPES: Final[Mapping[str, tuple[tuple[str, str], ...]]] = {
    "<completion/complete": (
        ("2024-11-05", "CompleteResult"),
    ),
    "<elicitation/create": (
        ("2025-06-18", "ElicitResult"),
    ),
    "<initialize": (
        ("2024-11-05", "InitializeResult"),
        ("2026-07-28", ""),
    ),
    "<logging/setLevel": (
        ("2024-11-05", "EmptyResult"),
        ("2026-07-28", ""),
    ),
    "<ping": (
        ("2024-11-05", "EmptyResult"),
        ("2026-07-28", ""),
    ),
    "<prompts/get": (
        ("2024-11-05", "GetPromptResult"),
    ),
    "<prompts/list": (
        ("2024-11-05", "ListPromptsResult"),
    ),
    "<resources/list": (
        ("2024-11-05", "ListResourcesResult"),
    ),
    "<resources/read": (
        ("2024-11-05", "ReadResourceResult"),
    ),
    "<resources/subscribe": (
        ("2024-11-05", "EmptyResult"),
        ("2026-07-28", ""),
    ),
    "<resources/templates/list": (
        ("2024-11-05", "ListResourceTemplatesResult"),
    ),
    "<resources/unsubscribe": (
        ("2024-11-05", "EmptyResult"),
        ("2026-07-28", ""),
    ),
    "<roots/list": (
        ("2024-11-05", "ListRootsResult"),
    ),
    "<sampling/createMessage": (
        ("2024-11-05", "CreateMessageResult"),
    ),
    "<server/discover": (
        ("2026-07-28", "DiscoverResult"),
    ),
    "<subscriptions/listen": (
        ("2026-07-28", "SubscriptionsListenResult"),
    ),
    "<tasks/cancel": (
        ("2025-11-25", "CancelTaskResult"),
        ("2026-07-28", "object"),
    ),
    "<tasks/get": (
        ("2025-11-25", "GetTaskResult"),
    ),
    "<tasks/list": (
        ("2025-11-25", "ListTasksResult"),
        ("2026-07-28", ""),
    ),
    "<tasks/result": (
        ("2025-11-25", "GetTaskPayloadResult"),
        ("2026-07-28", ""),
    ),
    "<tasks/update": (
        ("2026-07-28", "object"),
    ),
    "<tools/call": (
        ("2024-11-05", "CallToolResult"),
    ),
    "<tools/list": (
        ("2024-11-05", "ListToolsResult"),
    ),
    ">completion/complete": (
        ("2024-11-05", '{"argument":{"name":string,"value":string},"ref":PromptReference|ResourceReference}'),
        ("2025-06-18", '{"argument":{"name":string,"value":string},"context"?:{"arguments"?:{*:string}},"ref":PromptReference|ResourceTemplateReference}'),
        ("2025-11-25", "CompleteRequestParams"),
    ),
    ">elicitation/create": (
        ("2025-06-18", '{"message":string,"requestedSchema":{"properties":{*:PrimitiveSchemaDefinition},"required"?:[string],"type":"object"}}'),
        ("2025-11-25", "ElicitRequestParams"),
    ),
    ">initialize": (
        ("2024-11-05", '{"capabilities":ClientCapabilities,"clientInfo":Implementation,"protocolVersion":string}'),
        ("2025-11-25", "InitializeRequestParams"),
        ("2026-07-28", ""),
    ),
    ">logging/setLevel": (
        ("2024-11-05", '{"level":LoggingLevel}'),
        ("2025-11-25", "SetLevelRequestParams"),
        ("2026-07-28", ""),
    ),
    ">notifications/cancelled": (
        ("2024-11-05", '{"reason"?:string,"requestId":RequestId}'),
        ("2025-11-25", "CancelledNotificationParams"),
    ),
    ">notifications/elicitation/complete": (
        ("2025-11-25", '{"elicitationId":string}'),
        ("2026-07-28", ""),
    ),
    ">notifications/initialized": (
        ("2024-11-05", '{"_meta"?:object}'),
        ("2025-11-25", "NotificationParams"),
        ("2026-07-28", ""),
    ),
    ">notifications/message": (
        ("2024-11-05", '{"data":any,"level":LoggingLevel,"logger"?:string}'),
        ("2025-11-25", "LoggingMessageNotificationParams"),
    ),
    ">notifications/progress": (
        ("2024-11-05", '{"progress":number,"progressToken":ProgressToken,"total"?:number}'),
        ("2025-03-26", '{"message"?:string,"progress":number,"progressToken":ProgressToken,"total"?:number}'),
        ("2025-11-25", "ProgressNotificationParams"),
    ),
    ">notifications/prompts/list_changed": (
        ("2024-11-05", '{"_meta"?:object}'),
        ("2025-11-25", "NotificationParams"),
    ),
    ">notifications/resources/list_changed": (
        ("2024-11-05", '{"_meta"?:object}'),
        ("2025-11-25", "NotificationParams"),
    ),
    ">notifications/resources/updated": (
        ("2024-11-05", '{"uri":string}'),
        ("2025-11-25", "ResourceUpdatedNotificationParams"),
    ),
    ">notifications/roots/list_changed": (
        ("2024-11-05", '{"_meta"?:object}'),
        ("2025-11-25", "NotificationParams"),
        ("2026-07-28", ""),
    ),
    ">notifications/subscriptions/acknowledged": (
        ("2026-07-28", "SubscriptionsAcknowledgedNotificationParams"),
    ),
    ">notifications/tasks": (
        ("2026-07-28", "GetTaskResult"),
    ),
    ">notifications/tasks/status": (
        ("2025-11-25", "TaskStatusNotificationParams"),
        ("2026-07-28", ""),
    ),
    ">notifications/tools/list_changed": (
        ("2024-11-05", '{"_meta"?:object}'),
        ("2025-11-25", "NotificationParams"),
    ),
    ">ping": (
        ("2024-11-05", '{"_meta"?:{"progressToken"?:ProgressToken}}'),
        ("2025-11-25", "RequestParams"),
        ("2026-07-28", ""),
    ),
    ">prompts/get": (
        ("2024-11-05", '{"arguments"?:{*:string},"name":string}'),
        ("2025-11-25", "GetPromptRequestParams"),
    ),
    ">prompts/list": (
        ("2024-11-05", '{"cursor"?:string}'),
        ("2025-11-25", "PaginatedRequestParams"),
    ),
    ">resources/list": (
        ("2024-11-05", '{"cursor"?:string}'),
        ("2025-11-25", "PaginatedRequestParams"),
    ),
    ">resources/read": (
        ("2024-11-05", '{"uri":string}'),
        ("2025-11-25", "ReadResourceRequestParams"),
    ),
    ">resources/subscribe": (
        ("2024-11-05", '{"uri":string}'),
        ("2025-11-25", "SubscribeRequestParams"),
        ("2026-07-28", ""),
    ),
    ">resources/templates/list": (
        ("2024-11-05", '{"cursor"?:string}'),
        ("2025-11-25", "PaginatedRequestParams"),
    ),
    ">resources/unsubscribe": (
        ("2024-11-05", '{"uri":string}'),
        ("2025-11-25", "UnsubscribeRequestParams"),
        ("2026-07-28", ""),
    ),
    ">roots/list": (
        ("2024-11-05", '{"_meta"?:{"progressToken"?:ProgressToken}}'),
        ("2025-11-25", "RequestParams"),
        ("2026-07-28", '{"_meta"?:MetaObject}'),
    ),
    ">sampling/createMessage": (
        ("2024-11-05", '{"includeContext"?:"allServers"|"none"|"thisServer","maxTokens":integer,"messages":[SamplingMessage],"metadata"?:object,"modelPreferences"?:ModelPreferences,"stopSequences"?:[string],"systemPrompt"?:string,"temperature"?:number}'),
        ("2025-11-25", "CreateMessageRequestParams"),
    ),
    ">server/discover": (
        ("2026-07-28", "RequestParams"),
    ),
    ">subscriptions/listen": (
        ("2026-07-28", "SubscriptionsListenRequestParams"),
    ),
    ">tasks/cancel": (
        ("2025-11-25", '{"taskId":string}'),
        ("2026-07-28", '{"taskId":string,"_meta"?:RequestMetaObject}'),
    ),
    ">tasks/get": (
        ("2025-11-25", '{"taskId":string}'),
        ("2026-07-28", '{"taskId":string,"_meta"?:RequestMetaObject}'),
    ),
    ">tasks/list": (
        ("2025-11-25", "PaginatedRequestParams"),
        ("2026-07-28", ""),
    ),
    ">tasks/result": (
        ("2025-11-25", '{"taskId":string}'),
        ("2026-07-28", ""),
    ),
    ">tasks/update": (
        ("2026-07-28", '{"taskId":string,"inputResponses":InputResponses,"_meta"?:RequestMetaObject}'),
    ),
    ">tools/call": (
        ("2024-11-05", '{"arguments"?:object,"name":string}'),
        ("2025-11-25", "CallToolRequestParams"),
    ),
    ">tools/list": (
        ("2024-11-05", '{"cursor"?:string}'),
        ("2025-11-25", "PaginatedRequestParams"),
    ),
    "Annotations": (
        ("2025-03-26", '{"audience"?:[Role],"priority"?:number(0,1)}'),
        ("2025-06-18", '{"audience"?:[Role],"lastModified"?:string,"priority"?:number(0,1)}'),
    ),
    "AudioContent": (
        ("2025-03-26", '{"annotations"?:Annotations,"data":base64,"mimeType":string,"type":"audio"}'),
        ("2025-06-18", '{"_meta"?:object,"annotations"?:Annotations,"data":base64,"mimeType":string,"type":"audio"}'),
        ("2026-07-28", '{"_meta"?:MetaObject,"annotations"?:Annotations,"data":base64,"mimeType":string,"type":"audio"}'),
    ),
    "BlobResourceContents": (
        ("2024-11-05", '{"blob":base64,"mimeType"?:string,"uri":string}'),
        ("2025-06-18", '{"_meta"?:object,"blob":base64,"mimeType"?:string,"uri":string}'),
        ("2026-07-28", '{"_meta"?:MetaObject,"blob":base64,"mimeType"?:string,"uri":string}'),
    ),
    "BooleanSchema": (
        ("2025-06-18", '{"default"?:boolean,"description"?:string,"title"?:string,"type":"boolean"}'),
    ),
    "CallToolRequestParams": (
        ("2025-11-25", '{"_meta"?:{"progressToken"?:ProgressToken},"arguments"?:object,"name":string,"task"?:TaskMetadata}'),
        ("2026-07-28", '{"_meta"?:RequestMetaObject,"arguments"?:object,"inputResponses"?:InputResponses,"name":string,"requestState"?:string}'),
    ),
    "CallToolResult": (
        ("2024-11-05", '{"_meta"?:object,"content":[TextContent|ImageContent|EmbeddedResource],"isError"?:boolean}'),
        ("2025-03-26", '{"_meta"?:object,"content":[TextContent|ImageContent|AudioContent|EmbeddedResource],"isError"?:boolean}'),
        ("2025-06-18", '{"_meta"?:object,"content":[ContentBlock],"isError"?:boolean,"structuredContent"?:object}'),
        ("2026-07-28", '{"_meta"?:ResultMetaObject,"content":[ContentBlock],"isError"?:boolean,"structuredContent"?:any}'),
    ),
    "CancelTaskResult": (
        ("2025-11-25", "Result&Task"),
        ("2026-07-28", ""),
    ),
    "CancelledNotificationParams": (
        ("2025-11-25", '{"_meta"?:object,"reason"?:string,"requestId"?:RequestId}'),
        ("2026-07-28", '{"_meta"?:NotificationMetaObject,"reason"?:string,"requestId":RequestId}'),
    ),
    "ClientCapabilities": (
        ("2024-11-05", '{"experimental"?:{*:object},"roots"?:{"listChanged"?:boolean},"sampling"?:object}'),
        ("2025-06-18", '{"elicitation"?:object,"experimental"?:{*:object},"roots"?:{"listChanged"?:boolean},"sampling"?:object}'),
        ("2025-11-25", '{"elicitation"?:{"form"?:object,"url"?:object},"experimental"?:{*:object},"roots"?:{"listChanged"?:boolean},"sampling"?:{"context"?:object,"tools"?:object},"tasks"?:{"cancel"?:object,"list"?:object,"requests"?:{"elicitation"?:{"create"?:object},"sampling"?:{"createMessage"?:object}}}}'),
        ("2026-07-28", '{"elicitation"?:{"form"?:object,"url"?:object},"experimental"?:{*:object},"extensions"?:{*:object},"roots"?:object,"sampling"?:{"context"?:object,"tools"?:object}}'),
    ),
    "CompleteRequestParams": (
        ("2025-11-25", '{"_meta"?:{"progressToken"?:ProgressToken},"argument":{"name":string,"value":string},"context"?:{"arguments"?:{*:string}},"ref":PromptReference|ResourceTemplateReference}'),
        ("2026-07-28", '{"_meta"?:RequestMetaObject,"argument":{"name":string,"value":string},"context"?:{"arguments"?:{*:string}},"ref":PromptReference|ResourceTemplateReference}'),
    ),
    "CompleteResult": (
        ("2024-11-05", '{"_meta"?:object,"completion":{"hasMore"?:boolean,"total"?:number,"values":[string]}}'),
        ("2026-07-28", '{"_meta"?:ResultMetaObject,"completion":{"hasMore"?:boolean,"total"?:number,"values":[string]}}'),
    ),
    "ContentBlock": (
        ("2025-06-18", "TextContent|ImageContent|AudioContent|ResourceLink|EmbeddedResource"),
    ),
    "CreateMessageRequest": (
        ("2026-07-28", '{"method":"sampling/createMessage","params":CreateMessageRequestParams}'),
    ),
    "CreateMessageRequestParams": (
        ("2025-11-25", '{"_meta"?:{"progressToken"?:ProgressToken},"includeContext"?:"allServers"|"none"|"thisServer","maxTokens":integer,"messages":[SamplingMessage],"metadata"?:object,"modelPreferences"?:ModelPreferences,"stopSequences"?:[string],"systemPrompt"?:string,"task"?:TaskMetadata,"temperature"?:number,"toolChoice"?:ToolChoice,"tools"?:[Tool]}'),
        ("2026-07-28", '{"includeContext"?:"allServers"|"none"|"thisServer","maxTokens":integer,"messages":[SamplingMessage],"metadata"?:object,"modelPreferences"?:ModelPreferences,"stopSequences"?:[string],"systemPrompt"?:string,"temperature"?:number,"toolChoice"?:ToolChoice,"tools"?:[Tool]}'),
    ),
    "CreateMessageResult": (
        ("2024-11-05", '{"_meta"?:object,"content":TextContent|ImageContent,"model":string,"role":Role,"stopReason"?:string}'),
        ("2025-03-26", '{"_meta"?:object,"content":TextContent|ImageContent|AudioContent,"model":string,"role":Role,"stopReason"?:string}'),
        ("2025-11-25", '{"_meta"?:object,"content":TextContent|ImageContent|AudioContent|ToolUseContent|ToolResultContent|[SamplingMessageContentBlock],"model":string,"role":Role,"stopReason"?:string}'),
        ("2026-07-28", '{"_meta"?:MetaObject,"content":TextContent|ImageContent|AudioContent|ToolUseContent|ToolResultContent|[SamplingMessageContentBlock],"model":string,"role":Role,"stopReason"?:string}'),
    ),
    "CreateTaskResult": (
        ("2025-11-25", '{"_meta"?:object,"task":Task}'),
        ("2026-07-28", 'Result&{"taskId":string,"status":"working"|"input_required"|"completed"|"failed"|"cancelled","statusMessage"?:string,"createdAt":string,"lastUpdatedAt":string,"ttlMs":integer(-9007199254740991,9007199254740991)|null,"pollIntervalMs"?:number(-9007199254740991,9007199254740991)}'),
    ),
    "DiscoverResult": (
        ("2026-07-28", '{"_meta"?:ResultMetaObject,"cacheScope":"private"|"public","capabilities":ServerCapabilities,"instructions"?:string,"supportedVersions":[string],"ttlMs":integer(0,)}'),
    ),
    "ElicitRequest": (
        ("2026-07-28", '{"method":"elicitation/create","params":ElicitRequestParams}'),
    ),
    "ElicitRequestFormParams": (
        ("2025-11-25", '{"_meta"?:{"progressToken"?:ProgressToken},"message":string,"mode"?:"form","requestedSchema":{"$schema"?:string,"properties":{*:PrimitiveSchemaDefinition},"required"?:[string],"type":"object"},"task"?:TaskMetadata}'),
        ("2026-07-28", '{"message":string,"mode"?:"form","requestedSchema":{"$schema"?:string,"properties":{*:PrimitiveSchemaDefinition},"required"?:[string],"type":"object"}}'),
    ),
    "ElicitRequestParams": (
        ("2025-11-25", "ElicitRequestURLParams|ElicitRequestFormParams"),
        ("2026-07-28", "ElicitRequestFormParams|ElicitRequestURLParams"),
    ),
    "ElicitRequestURLParams": (
        ("2025-11-25", '{"_meta"?:{"progressToken"?:ProgressToken},"elicitationId":string,"message":string,"mode":"url","task"?:TaskMetadata,"url":string}'),
        ("2026-07-28", '{"message":string,"mode":"url","url":string}'),
    ),
    "ElicitResult": (
        ("2025-06-18", '{"_meta"?:object,"action":"accept"|"cancel"|"decline","content"?:{*:string|number|boolean}}'),
        ("2025-11-25", '{"_meta"?:object,"action":"accept"|"cancel"|"decline","content"?:{*:[string]|string|number|boolean}}'),
        ("2026-07-28", '{"action":"accept"|"cancel"|"decline","content"?:{*:[string]|string|number|boolean}}'),
    ),
    "EmbeddedResource": (
        ("2024-11-05", '{"annotations"?:{"audience"?:[Role],"priority"?:number(0,1)},"resource":TextResourceContents|BlobResourceContents,"type":"resource"}'),
        ("2025-03-26", '{"annotations"?:Annotations,"resource":TextResourceContents|BlobResourceContents,"type":"resource"}'),
        ("2025-06-18", '{"_meta"?:object,"annotations"?:Annotations,"resource":TextResourceContents|BlobResourceContents,"type":"resource"}'),
        ("2026-07-28", '{"_meta"?:MetaObject,"annotations"?:Annotations,"resource":TextResourceContents|BlobResourceContents,"type":"resource"}'),
    ),
    "EmptyResult": (
        ("2024-11-05", "Result"),
        ("2026-07-28", ""),
    ),
    "EnumSchema": (
        ("2025-06-18", '{"description"?:string,"enum":[string],"enumNames"?:[string],"title"?:string,"type":"string"}'),
        ("2025-11-25", ""),
    ),
    "Error": (
        ("2025-11-25", '{"code":integer,"data"?:any,"message":string}'),
    ),
    "GetPromptRequestParams": (
        ("2025-11-25", '{"_meta"?:{"progressToken"?:ProgressToken},"arguments"?:{*:string},"name":string}'),
        ("2026-07-28", '{"_meta"?:RequestMetaObject,"arguments"?:{*:string},"inputResponses"?:InputResponses,"name":string,"requestState"?:string}'),
    ),
    "GetPromptResult": (
        ("2024-11-05", '{"_meta"?:object,"description"?:string,"messages":[PromptMessage]}'),
        ("2026-07-28", '{"_meta"?:ResultMetaObject,"description"?:string,"messages":[PromptMessage]}'),
    ),
    "GetTaskPayloadResult": (
        ("2025-11-25", '{"_meta"?:object}'),
        ("2026-07-28", ""),
    ),
    "GetTaskResult": (
        ("2025-11-25", "Result&Task"),
        ("2026-07-28", '{"taskId":string,"status":"working","statusMessage"?:string,"createdAt":string,"lastUpdatedAt":string,"ttlMs":integer(-9007199254740991,9007199254740991)|null,"pollIntervalMs"?:number(-9007199254740991,9007199254740991)}|{"taskId":string,"status":"input_required","statusMessage"?:string,"createdAt":string,"lastUpdatedAt":string,"ttlMs":integer(-9007199254740991,9007199254740991)|null,"pollIntervalMs"?:number(-9007199254740991,9007199254740991),"inputRequests":InputRequests}|{"taskId":string,"status":"completed","statusMessage"?:string,"createdAt":string,"lastUpdatedAt":string,"ttlMs":integer(-9007199254740991,9007199254740991)|null,"pollIntervalMs"?:number(-9007199254740991,9007199254740991),"result":object}|{"taskId":string,"status":"failed","statusMessage"?:string,"createdAt":string,"lastUpdatedAt":string,"ttlMs":integer(-9007199254740991,9007199254740991)|null,"pollIntervalMs"?:number(-9007199254740991,9007199254740991),"error":Error}|{"taskId":string,"status":"cancelled","statusMessage"?:string,"createdAt":string,"lastUpdatedAt":string,"ttlMs":integer(-9007199254740991,9007199254740991)|null,"pollIntervalMs"?:number(-9007199254740991,9007199254740991)}'),
    ),
    "Icon": (
        ("2025-11-25", '{"mimeType"?:string,"sizes"?:[string],"src":string,"theme"?:"dark"|"light"}'),
    ),
    "ImageContent": (
        ("2024-11-05", '{"annotations"?:{"audience"?:[Role],"priority"?:number(0,1)},"data":base64,"mimeType":string,"type":"image"}'),
        ("2025-03-26", '{"annotations"?:Annotations,"data":base64,"mimeType":string,"type":"image"}'),
        ("2025-06-18", '{"_meta"?:object,"annotations"?:Annotations,"data":base64,"mimeType":string,"type":"image"}'),
        ("2026-07-28", '{"_meta"?:MetaObject,"annotations"?:Annotations,"data":base64,"mimeType":string,"type":"image"}'),
    ),
    "Implementation": (
        ("2024-11-05", '{"name":string,"version":string}'),
        ("2025-06-18", '{"name":string,"title"?:string,"version":string}'),
        ("2025-11-25", '{"description"?:string,"icons"?:[Icon],"name":string,"title"?:string,"version":string,"websiteUrl"?:string}'),
    ),
    "InitializeRequestParams": (
        ("2025-11-25", '{"_meta"?:{"progressToken"?:ProgressToken},"capabilities":ClientCapabilities,"clientInfo":Implementation,"protocolVersion":string}'),
        ("2026-07-28", ""),
    ),
    "InitializeResult": (
        ("2024-11-05", '{"_meta"?:object,"capabilities":ServerCapabilities,"instructions"?:string,"protocolVersion":string,"serverInfo":Implementation}'),
        ("2026-07-28", ""),
    ),
    "InputRequest": (
        ("2026-07-28", "CreateMessageRequest|ListRootsRequest|ElicitRequest"),
    ),
    "InputRequests": (
        ("2026-07-28", "{*:InputRequest}"),
    ),
    "InputRequiredResult": (
        ("2026-07-28", '{"_meta"?:ResultMetaObject,"inputRequests"?:InputRequests,"requestState"?:string}'),
    ),
    "InputResponse": (
        ("2026-07-28", "CreateMessageResult|ListRootsResult|ElicitResult"),
    ),
    "InputResponses": (
        ("2026-07-28", "{*:InputResponse}"),
    ),
    "LegacyTitledEnumSchema": (
        ("2025-11-25", '{"default"?:string,"description"?:string,"enum":[string],"enumNames"?:[string],"title"?:string,"type":"string"}'),
    ),
    "ListPromptsResult": (
        ("2024-11-05", '{"_meta"?:object,"nextCursor"?:string,"prompts":[Prompt]}'),
        ("2026-07-28", '{"_meta"?:ResultMetaObject,"cacheScope":"private"|"public","nextCursor"?:string,"prompts":[Prompt],"ttlMs":integer(0,)}'),
    ),
    "ListResourceTemplatesResult": (
        ("2024-11-05", '{"_meta"?:object,"nextCursor"?:string,"resourceTemplates":[ResourceTemplate]}'),
        ("2026-07-28", '{"_meta"?:ResultMetaObject,"cacheScope":"private"|"public","nextCursor"?:string,"resourceTemplates":[ResourceTemplate],"ttlMs":integer(0,)}'),
    ),
    "ListResourcesResult": (
        ("2024-11-05", '{"_meta"?:object,"nextCursor"?:string,"resources":[Resource]}'),
        ("2026-07-28", '{"_meta"?:ResultMetaObject,"cacheScope":"private"|"public","nextCursor"?:string,"resources":[Resource],"ttlMs":integer(0,)}'),
    ),
    "ListRootsRequest": (
        ("2026-07-28", '{"method":"roots/list","params"?:{"_meta"?:MetaObject}}'),
    ),
    "ListRootsResult": (
        ("2024-11-05", '{"_meta"?:object,"roots":[Root]}'),
        ("2026-07-28", '{"roots":[Root]}'),
    ),
    "ListTasksResult": (
        ("2025-11-25", '{"_meta"?:object,"nextCursor"?:string,"tasks":[Task]}'),
        ("2026-07-28", ""),
    ),
    "ListToolsResult": (
        ("2024-11-05", '{"_meta"?:object,"nextCursor"?:string,"tools":[Tool]}'),
        ("2026-07-28", '{"_meta"?:ResultMetaObject,"cacheScope":"private"|"public","nextCursor"?:string,"tools":[Tool],"ttlMs":integer(0,)}'),
    ),
    "LoggingLevel": (
        ("2024-11-05", '"alert"|"critical"|"debug"|"emergency"|"error"|"info"|"notice"|"warning"'),
    ),
    "LoggingMessageNotificationParams": (
        ("2025-11-25", '{"_meta"?:object,"data":any,"level":LoggingLevel,"logger"?:string}'),
        ("2026-07-28", '{"_meta"?:NotificationMetaObject,"data":any,"level":LoggingLevel,"logger"?:string}'),
    ),
    "MetaObject": (
        ("2026-07-28", "object"),
    ),
    "ModelHint": (
        ("2024-11-05", '{"name"?:string}'),
    ),
    "ModelPreferences": (
        ("2024-11-05", '{"costPriority"?:number(0,1),"hints"?:[ModelHint],"intelligencePriority"?:number(0,1),"speedPriority"?:number(0,1)}'),
    ),
    "NotificationMetaObject": (
        ("2026-07-28", '{"io.modelcontextprotocol/subscriptionId"?:RequestId}'),
    ),
    "NotificationParams": (
        ("2025-11-25", '{"_meta"?:object}'),
        ("2026-07-28", '{"_meta"?:NotificationMetaObject}'),
    ),
    "NumberSchema": (
        ("2025-06-18", '{"description"?:string,"maximum"?:number,"minimum"?:number,"title"?:string,"type":"integer"|"number"}'),
        ("2025-11-25", '{"default"?:number,"description"?:string,"maximum"?:number,"minimum"?:number,"title"?:string,"type":"integer"|"number"}'),
    ),
    "PaginatedRequestParams": (
        ("2025-11-25", '{"_meta"?:{"progressToken"?:ProgressToken},"cursor"?:string}'),
        ("2026-07-28", '{"_meta"?:RequestMetaObject,"cursor"?:string}'),
    ),
    "PrimitiveSchemaDefinition": (
        ("2025-06-18", "StringSchema|NumberSchema|BooleanSchema|EnumSchema"),
        ("2025-11-25", "StringSchema|NumberSchema|BooleanSchema|UntitledSingleSelectEnumSchema|TitledSingleSelectEnumSchema|UntitledMultiSelectEnumSchema|TitledMultiSelectEnumSchema|LegacyTitledEnumSchema"),
    ),
    "ProgressNotificationParams": (
        ("2025-11-25", '{"_meta"?:object,"message"?:string,"progress":number,"progressToken":ProgressToken,"total"?:number}'),
        ("2026-07-28", '{"_meta"?:NotificationMetaObject,"message"?:string,"progress":number,"progressToken":ProgressToken,"total"?:number}'),
    ),
    "ProgressToken": (
        ("2024-11-05", "string|integer"),
    ),
    "Prompt": (
        ("2024-11-05", '{"arguments"?:[PromptArgument],"description"?:string,"name":string}'),
        ("2025-06-18", '{"_meta"?:object,"arguments"?:[PromptArgument],"description"?:string,"name":string,"title"?:string}'),
        ("2025-11-25", '{"_meta"?:object,"arguments"?:[PromptArgument],"description"?:string,"icons"?:[Icon],"name":string,"title"?:string}'),
        ("2026-07-28", '{"_meta"?:MetaObject,"arguments"?:[PromptArgument],"description"?:string,"icons"?:[Icon],"name":string,"title"?:string}'),
    ),
    "PromptArgument": (
        ("2024-11-05", '{"description"?:string,"name":string,"required"?:boolean}'),
        ("2025-06-18", '{"description"?:string,"name":string,"required"?:boolean,"title"?:string}'),
    ),
    "PromptMessage": (
        ("2024-11-05", '{"content":TextContent|ImageContent|EmbeddedResource,"role":Role}'),
        ("2025-03-26", '{"content":TextContent|ImageContent|AudioContent|EmbeddedResource,"role":Role}'),
        ("2025-06-18", '{"content":ContentBlock,"role":Role}'),
    ),
    "PromptReference": (
        ("2024-11-05", '{"name":string,"type":"ref/prompt"}'),
        ("2025-06-18", '{"name":string,"title"?:string,"type":"ref/prompt"}'),
    ),
    "ReadResourceRequestParams": (
        ("2025-11-25", '{"_meta"?:{"progressToken"?:ProgressToken},"uri":string}'),
        ("2026-07-28", '{"_meta"?:RequestMetaObject,"inputResponses"?:InputResponses,"requestState"?:string,"uri":string}'),
    ),
    "ReadResourceResult": (
        ("2024-11-05", '{"_meta"?:object,"contents":[TextResourceContents|BlobResourceContents]}'),
        ("2026-07-28", '{"_meta"?:ResultMetaObject,"cacheScope":"private"|"public","contents":[TextResourceContents|BlobResourceContents],"ttlMs":integer(0,)}'),
    ),
    "RequestId": (
        ("2024-11-05", "string|integer"),
    ),
    "RequestMetaObject": (
        ("2026-07-28", '{"io.modelcontextprotocol/clientCapabilities":ClientCapabilities,"io.modelcontextprotocol/clientInfo"?:Implementation,"io.modelcontextprotocol/logLevel"?:LoggingLevel,"io.modelcontextprotocol/protocolVersion":string,"progressToken"?:ProgressToken}'),
    ),
    "RequestParams": (
        ("2025-11-25", '{"_meta"?:{"progressToken"?:ProgressToken}}'),
        ("2026-07-28", '{"_meta"?:RequestMetaObject}'),
    ),
    "Resource": (
        ("2024-11-05", '{"annotations"?:{"audience"?:[Role],"priority"?:number(0,1)},"description"?:string,"mimeType"?:string,"name":string,"size"?:number,"uri":string}'),
        ("2025-03-26", '{"annotations"?:Annotations,"description"?:string,"mimeType"?:string,"name":string,"size"?:number,"uri":string}'),
        ("2025-06-18", '{"_meta"?:object,"annotations"?:Annotations,"description"?:string,"mimeType"?:string,"name":string,"size"?:number,"title"?:string,"uri":string}'),
        ("2025-11-25", '{"_meta"?:object,"annotations"?:Annotations,"description"?:string,"icons"?:[Icon],"mimeType"?:string,"name":string,"size"?:number,"title"?:string,"uri":string}'),
        ("2026-07-28", '{"_meta"?:MetaObject,"annotations"?:Annotations,"description"?:string,"icons"?:[Icon],"mimeType"?:string,"name":string,"size"?:number,"title"?:string,"uri":string}'),
    ),
    "ResourceLink": (
        ("2025-06-18", '{"_meta"?:object,"annotations"?:Annotations,"description"?:string,"mimeType"?:string,"name":string,"size"?:number,"title"?:string,"type":"resource_link","uri":string}'),
        ("2025-11-25", '{"_meta"?:object,"annotations"?:Annotations,"description"?:string,"icons"?:[Icon],"mimeType"?:string,"name":string,"size"?:number,"title"?:string,"type":"resource_link","uri":string}'),
        ("2026-07-28", '{"_meta"?:MetaObject,"annotations"?:Annotations,"description"?:string,"icons"?:[Icon],"mimeType"?:string,"name":string,"size"?:number,"title"?:string,"type":"resource_link","uri":string}'),
    ),
    "ResourceReference": (
        ("2024-11-05", '{"type":"ref/resource","uri":string}'),
        ("2025-06-18", ""),
    ),
    "ResourceTemplate": (
        ("2024-11-05", '{"annotations"?:{"audience"?:[Role],"priority"?:number(0,1)},"description"?:string,"mimeType"?:string,"name":string,"uriTemplate":string}'),
        ("2025-03-26", '{"annotations"?:Annotations,"description"?:string,"mimeType"?:string,"name":string,"uriTemplate":string}'),
        ("2025-06-18", '{"_meta"?:object,"annotations"?:Annotations,"description"?:string,"mimeType"?:string,"name":string,"title"?:string,"uriTemplate":string}'),
        ("2025-11-25", '{"_meta"?:object,"annotations"?:Annotations,"description"?:string,"icons"?:[Icon],"mimeType"?:string,"name":string,"title"?:string,"uriTemplate":string}'),
        ("2026-07-28", '{"_meta"?:MetaObject,"annotations"?:Annotations,"description"?:string,"icons"?:[Icon],"mimeType"?:string,"name":string,"title"?:string,"uriTemplate":string}'),
    ),
    "ResourceTemplateReference": (
        ("2025-06-18", '{"type":"ref/resource","uri":string}'),
    ),
    "ResourceUpdatedNotificationParams": (
        ("2025-11-25", '{"_meta"?:object,"uri":string}'),
        ("2026-07-28", '{"_meta"?:NotificationMetaObject,"uri":string}'),
    ),
    "Result": (
        ("2024-11-05", '{"_meta"?:object}'),
        ("2026-07-28", '{"_meta"?:ResultMetaObject}'),
    ),
    "ResultMetaObject": (
        ("2026-07-28", '{"io.modelcontextprotocol/serverInfo"?:Implementation}'),
    ),
    "Role": (
        ("2024-11-05", '"assistant"|"user"'),
    ),
    "Root": (
        ("2024-11-05", '{"name"?:string,"uri":string}'),
        ("2025-06-18", '{"_meta"?:object,"name"?:string,"uri":string}'),
        ("2026-07-28", '{"_meta"?:MetaObject,"name"?:string,"uri":string}'),
    ),
    "SamplingMessage": (
        ("2024-11-05", '{"content":TextContent|ImageContent,"role":Role}'),
        ("2025-03-26", '{"content":TextContent|ImageContent|AudioContent,"role":Role}'),
        ("2025-11-25", '{"_meta"?:object,"content":TextContent|ImageContent|AudioContent|ToolUseContent|ToolResultContent|[SamplingMessageContentBlock],"role":Role}'),
        ("2026-07-28", '{"_meta"?:MetaObject,"content":TextContent|ImageContent|AudioContent|ToolUseContent|ToolResultContent|[SamplingMessageContentBlock],"role":Role}'),
    ),
    "SamplingMessageContentBlock": (
        ("2025-11-25", "TextContent|ImageContent|AudioContent|ToolUseContent|ToolResultContent"),
    ),
    "ServerCapabilities": (
        ("2024-11-05", '{"experimental"?:{*:object},"logging"?:object,"prompts"?:{"listChanged"?:boolean},"resources"?:{"listChanged"?:boolean,"subscribe"?:boolean},"tools"?:{"listChanged"?:boolean}}'),
        ("2025-03-26", '{"completions"?:object,"experimental"?:{*:object},"logging"?:object,"prompts"?:{"listChanged"?:boolean},"resources"?:{"listChanged"?:boolean,"subscribe"?:boolean},"tools"?:{"listChanged"?:boolean}}'),
        ("2025-11-25", '{"completions"?:object,"experimental"?:{*:object},"logging"?:object,"prompts"?:{"listChanged"?:boolean},"resources"?:{"listChanged"?:boolean,"subscribe"?:boolean},"tasks"?:{"cancel"?:object,"list"?:object,"requests"?:{"tools"?:{"call"?:object}}},"tools"?:{"listChanged"?:boolean}}'),
        ("2026-07-28", '{"completions"?:object,"experimental"?:{*:object},"extensions"?:{*:object},"logging"?:object,"prompts"?:{"listChanged"?:boolean},"resources"?:{"listChanged"?:boolean,"subscribe"?:boolean},"tools"?:{"listChanged"?:boolean}}'),
    ),
    "SetLevelRequestParams": (
        ("2025-11-25", '{"_meta"?:{"progressToken"?:ProgressToken},"level":LoggingLevel}'),
        ("2026-07-28", ""),
    ),
    "StringSchema": (
        ("2025-06-18", '{"description"?:string,"format"?:"date"|"date-time"|"email"|"uri","maxLength"?:number,"minLength"?:number,"title"?:string,"type":"string"}'),
        ("2025-11-25", '{"default"?:string,"description"?:string,"format"?:"date"|"date-time"|"email"|"uri","maxLength"?:number,"minLength"?:number,"title"?:string,"type":"string"}'),
    ),
    "SubscribeRequestParams": (
        ("2025-11-25", '{"_meta"?:{"progressToken"?:ProgressToken},"uri":string}'),
        ("2026-07-28", ""),
    ),
    "SubscriptionFilter": (
        ("2026-07-28", '{"promptsListChanged"?:boolean,"resourceSubscriptions"?:[string],"resourcesListChanged"?:boolean,"toolsListChanged"?:boolean}'),
    ),
    "SubscriptionsAcknowledgedNotificationParams": (
        ("2026-07-28", '{"_meta"?:NotificationMetaObject,"notifications":SubscriptionFilter}'),
    ),
    "SubscriptionsListenRequestParams": (
        ("2026-07-28", '{"_meta"?:RequestMetaObject,"notifications":SubscriptionFilter}'),
    ),
    "SubscriptionsListenResult": (
        ("2026-07-28", '{"_meta"?:SubscriptionsListenResultMetaObject}'),
    ),
    "SubscriptionsListenResultMetaObject": (
        ("2026-07-28", '{"io.modelcontextprotocol/serverInfo"?:Implementation,"io.modelcontextprotocol/subscriptionId":RequestId}'),
    ),
    "Task": (
        ("2025-11-25", '{"createdAt":string,"lastUpdatedAt":string,"pollInterval"?:number,"status":TaskStatus,"statusMessage"?:string,"taskId":string,"ttl":number|null}'),
        ("2026-07-28", ""),
    ),
    "TaskMetadata": (
        ("2025-11-25", '{"ttl"?:number}'),
        ("2026-07-28", ""),
    ),
    "TaskStatus": (
        ("2025-11-25", '"cancelled"|"completed"|"failed"|"input_required"|"working"'),
        ("2026-07-28", ""),
    ),
    "TaskStatusNotificationParams": (
        ("2025-11-25", "NotificationParams&Task"),
        ("2026-07-28", ""),
    ),
    "TextContent": (
        ("2024-11-05", '{"annotations"?:{"audience"?:[Role],"priority"?:number(0,1)},"text":string,"type":"text"}'),
        ("2025-03-26", '{"annotations"?:Annotations,"text":string,"type":"text"}'),
        ("2025-06-18", '{"_meta"?:object,"annotations"?:Annotations,"text":string,"type":"text"}'),
        ("2026-07-28", '{"_meta"?:MetaObject,"annotations"?:Annotations,"text":string,"type":"text"}'),
    ),
    "TextResourceContents": (
        ("2024-11-05", '{"mimeType"?:string,"text":string,"uri":string}'),
        ("2025-06-18", '{"_meta"?:object,"mimeType"?:string,"text":string,"uri":string}'),
        ("2026-07-28", '{"_meta"?:MetaObject,"mimeType"?:string,"text":string,"uri":string}'),
    ),
    "TitledMultiSelectEnumSchema": (
        ("2025-11-25", '{"default"?:[string],"description"?:string,"items":{"anyOf":[{"const":string,"title":string}]},"maxItems"?:number,"minItems"?:number,"title"?:string,"type":"array"}'),
    ),
    "TitledSingleSelectEnumSchema": (
        ("2025-11-25", '{"default"?:string,"description"?:string,"oneOf":[{"const":string,"title":string}],"title"?:string,"type":"string"}'),
    ),
    "Tool": (
        ("2024-11-05", '{"description"?:string,"inputSchema":{"properties"?:{*:object},"required"?:[string],"type":"object"},"name":string}'),
        ("2025-03-26", '{"annotations"?:ToolAnnotations,"description"?:string,"inputSchema":{"properties"?:{*:object},"required"?:[string],"type":"object"},"name":string}'),
        ("2025-06-18", '{"_meta"?:object,"annotations"?:ToolAnnotations,"description"?:string,"inputSchema":{"properties"?:{*:object},"required"?:[string],"type":"object"},"name":string,"outputSchema"?:{"properties"?:{*:object},"required"?:[string],"type":"object"},"title"?:string}'),
        ("2025-11-25", '{"_meta"?:object,"annotations"?:ToolAnnotations,"description"?:string,"execution"?:ToolExecution,"icons"?:[Icon],"inputSchema":{"$schema"?:string,"properties"?:{*:object},"required"?:[string],"type":"object"},"name":string,"outputSchema"?:{"$schema"?:string,"properties"?:{*:object},"required"?:[string],"type":"object"},"title"?:string}'),
        ("2026-07-28", '{"_meta"?:MetaObject,"annotations"?:ToolAnnotations,"description"?:string,"icons"?:[Icon],"inputSchema":{"$schema"?:string,"type":"object"},"name":string,"outputSchema"?:{"$schema"?:string},"title"?:string}'),
    ),
    "ToolAnnotations": (
        ("2025-03-26", '{"destructiveHint"?:boolean,"idempotentHint"?:boolean,"openWorldHint"?:boolean,"readOnlyHint"?:boolean,"title"?:string}'),
    ),
    "ToolChoice": (
        ("2025-11-25", '{"mode"?:"auto"|"none"|"required"}'),
    ),
    "ToolExecution": (
        ("2025-11-25", '{"taskSupport"?:"forbidden"|"optional"|"required"}'),
        ("2026-07-28", ""),
    ),
    "ToolResultContent": (
        ("2025-11-25", '{"_meta"?:object,"content":[ContentBlock],"isError"?:boolean,"structuredContent"?:object,"toolUseId":string,"type":"tool_result"}'),
        ("2026-07-28", '{"_meta"?:MetaObject,"content":[ContentBlock],"isError"?:boolean,"structuredContent"?:any,"toolUseId":string,"type":"tool_result"}'),
    ),
    "ToolUseContent": (
        ("2025-11-25", '{"_meta"?:object,"id":string,"input":object,"name":string,"type":"tool_use"}'),
        ("2026-07-28", '{"_meta"?:MetaObject,"id":string,"input":object,"name":string,"type":"tool_use"}'),
    ),
    "UnsubscribeRequestParams": (
        ("2025-11-25", '{"_meta"?:{"progressToken"?:ProgressToken},"uri":string}'),
        ("2026-07-28", ""),
    ),
    "UntitledMultiSelectEnumSchema": (
        ("2025-11-25", '{"default"?:[string],"description"?:string,"items":{"enum":[string],"type":"string"},"maxItems"?:number,"minItems"?:number,"title"?:string,"type":"array"}'),
    ),
    "UntitledSingleSelectEnumSchema": (
        ("2025-11-25", '{"default"?:string,"description"?:string,"enum":[string],"title"?:string,"type":"string"}'),
    ),
}
# fmt: on
