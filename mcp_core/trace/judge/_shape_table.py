"""The shapes of params, results and what they contain, by revision.

Generated from the official JSON schemas by `tests/spec/generate_shapes.py`: do not edit.

A key is the name of a type, `>` and a method for its params, or `<` and a method for its result. A
value has the letters of the revisions, and the shape in the language of `_shapes.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["SHAPES"]

# fmt: off
SHAPES: Final[Mapping[str, tuple[tuple[str, str], ...]]] = {
    "<completion/complete": (
        ("ABCDE", "CompleteResult"),
    ),
    "<elicitation/create": (
        ("CDE", "ElicitResult"),
    ),
    "<initialize": (
        ("ABCD", "InitializeResult"),
    ),
    "<logging/setLevel": (
        ("ABCD", "EmptyResult"),
    ),
    "<ping": (
        ("ABCD", "EmptyResult"),
    ),
    "<prompts/get": (
        ("ABCDE", "GetPromptResult"),
    ),
    "<prompts/list": (
        ("ABCDE", "ListPromptsResult"),
    ),
    "<resources/list": (
        ("ABCDE", "ListResourcesResult"),
    ),
    "<resources/read": (
        ("ABCDE", "ReadResourceResult"),
    ),
    "<resources/subscribe": (
        ("ABCD", "EmptyResult"),
    ),
    "<resources/templates/list": (
        ("ABCDE", "ListResourceTemplatesResult"),
    ),
    "<resources/unsubscribe": (
        ("ABCD", "EmptyResult"),
    ),
    "<roots/list": (
        ("ABCDE", "ListRootsResult"),
    ),
    "<sampling/createMessage": (
        ("ABCDE", "CreateMessageResult"),
    ),
    "<server/discover": (
        ("E", "DiscoverResult"),
    ),
    "<subscriptions/listen": (
        ("E", "SubscriptionsListenResult"),
    ),
    "<tasks/cancel": (
        ("D", "CancelTaskResult"),
        ("E", "object"),
    ),
    "<tasks/get": (
        ("DE", "GetTaskResult"),
    ),
    "<tasks/list": (
        ("D", "ListTasksResult"),
    ),
    "<tasks/result": (
        ("D", "GetTaskPayloadResult"),
    ),
    "<tasks/update": (
        ("E", "object"),
    ),
    "<tools/call": (
        ("ABCDE", "CallToolResult"),
    ),
    "<tools/list": (
        ("ABCDE", "ListToolsResult"),
    ),
    ">completion/complete": (
        ("AB", '{"argument":{"name":string,"value":string},"ref":PromptReference|ResourceReference}'),
        ("C", '{"argument":{"name":string,"value":string},"context"?:{"arguments"?:{*:string}},"ref":PromptReference|ResourceTemplateReference}'),
        ("DE", "CompleteRequestParams"),
    ),
    ">elicitation/create": (
        ("C", '{"message":string,"requestedSchema":{"properties":{*:PrimitiveSchemaDefinition},"required"?:[string],"type":"object"}}'),
        ("DE", "ElicitRequestParams"),
    ),
    ">initialize": (
        ("ABC", '{"capabilities":ClientCapabilities,"clientInfo":Implementation,"protocolVersion":string}'),
        ("D", "InitializeRequestParams"),
    ),
    ">logging/setLevel": (
        ("ABC", '{"level":LoggingLevel}'),
        ("D", "SetLevelRequestParams"),
    ),
    ">notifications/cancelled": (
        ("ABC", '{"reason"?:string,"requestId":RequestId}'),
        ("DE", "CancelledNotificationParams"),
    ),
    ">notifications/elicitation/complete": (
        ("D", '{"elicitationId":string}'),
    ),
    ">notifications/initialized": (
        ("ABC", '{"_meta"?:object}'),
        ("D", "NotificationParams"),
    ),
    ">notifications/message": (
        ("ABC", '{"data":any,"level":LoggingLevel,"logger"?:string}'),
        ("DE", "LoggingMessageNotificationParams"),
    ),
    ">notifications/progress": (
        ("A", '{"progress":number,"progressToken":ProgressToken,"total"?:number}'),
        ("BC", '{"message"?:string,"progress":number,"progressToken":ProgressToken,"total"?:number}'),
        ("DE", "ProgressNotificationParams"),
    ),
    ">notifications/prompts/list_changed": (
        ("ABC", '{"_meta"?:object}'),
        ("DE", "NotificationParams"),
    ),
    ">notifications/resources/list_changed": (
        ("ABC", '{"_meta"?:object}'),
        ("DE", "NotificationParams"),
    ),
    ">notifications/resources/updated": (
        ("ABC", '{"uri":string}'),
        ("DE", "ResourceUpdatedNotificationParams"),
    ),
    ">notifications/roots/list_changed": (
        ("ABC", '{"_meta"?:object}'),
        ("D", "NotificationParams"),
    ),
    ">notifications/subscriptions/acknowledged": (
        ("E", "SubscriptionsAcknowledgedNotificationParams"),
    ),
    ">notifications/tasks": (
        ("E", "GetTaskResult"),
    ),
    ">notifications/tasks/status": (
        ("D", "TaskStatusNotificationParams"),
    ),
    ">notifications/tools/list_changed": (
        ("ABC", '{"_meta"?:object}'),
        ("DE", "NotificationParams"),
    ),
    ">ping": (
        ("ABC", '{"_meta"?:{"progressToken"?:ProgressToken}}'),
        ("D", "RequestParams"),
    ),
    ">prompts/get": (
        ("ABC", '{"arguments"?:{*:string},"name":string}'),
        ("DE", "GetPromptRequestParams"),
    ),
    ">prompts/list": (
        ("ABC", '{"cursor"?:string}'),
        ("DE", "PaginatedRequestParams"),
    ),
    ">resources/list": (
        ("ABC", '{"cursor"?:string}'),
        ("DE", "PaginatedRequestParams"),
    ),
    ">resources/read": (
        ("ABC", '{"uri":string}'),
        ("DE", "ReadResourceRequestParams"),
    ),
    ">resources/subscribe": (
        ("ABC", '{"uri":string}'),
        ("D", "SubscribeRequestParams"),
    ),
    ">resources/templates/list": (
        ("ABC", '{"cursor"?:string}'),
        ("DE", "PaginatedRequestParams"),
    ),
    ">resources/unsubscribe": (
        ("ABC", '{"uri":string}'),
        ("D", "UnsubscribeRequestParams"),
    ),
    ">roots/list": (
        ("ABC", '{"_meta"?:{"progressToken"?:ProgressToken}}'),
        ("D", "RequestParams"),
        ("E", '{"_meta"?:MetaObject}'),
    ),
    ">sampling/createMessage": (
        ("ABC", '{"includeContext"?:"allServers"|"none"|"thisServer","maxTokens":integer,"messages":[SamplingMessage],"metadata"?:object,"modelPreferences"?:ModelPreferences,"stopSequences"?:[string],"systemPrompt"?:string,"temperature"?:number}'),
        ("DE", "CreateMessageRequestParams"),
    ),
    ">server/discover": (
        ("E", "RequestParams"),
    ),
    ">subscriptions/listen": (
        ("E", "SubscriptionsListenRequestParams"),
    ),
    ">tasks/cancel": (
        ("D", '{"taskId":string}'),
        ("E", '{"taskId":string,"_meta"?:RequestMetaObject}'),
    ),
    ">tasks/get": (
        ("D", '{"taskId":string}'),
        ("E", '{"taskId":string,"_meta"?:RequestMetaObject}'),
    ),
    ">tasks/list": (
        ("D", "PaginatedRequestParams"),
    ),
    ">tasks/result": (
        ("D", '{"taskId":string}'),
    ),
    ">tasks/update": (
        ("E", '{"taskId":string,"inputResponses":InputResponses,"_meta"?:RequestMetaObject}'),
    ),
    ">tools/call": (
        ("ABC", '{"arguments"?:object,"name":string}'),
        ("DE", "CallToolRequestParams"),
    ),
    ">tools/list": (
        ("ABC", '{"cursor"?:string}'),
        ("DE", "PaginatedRequestParams"),
    ),
    "Annotations": (
        ("B", '{"audience"?:[Role],"priority"?:number(0,1)}'),
        ("CDE", '{"audience"?:[Role],"lastModified"?:string,"priority"?:number(0,1)}'),
    ),
    "AudioContent": (
        ("B", '{"annotations"?:Annotations,"data":base64,"mimeType":string,"type":"audio"}'),
        ("CD", '{"_meta"?:object,"annotations"?:Annotations,"data":base64,"mimeType":string,"type":"audio"}'),
        ("E", '{"_meta"?:MetaObject,"annotations"?:Annotations,"data":base64,"mimeType":string,"type":"audio"}'),
    ),
    "BlobResourceContents": (
        ("AB", '{"blob":base64,"mimeType"?:string,"uri":string}'),
        ("CD", '{"_meta"?:object,"blob":base64,"mimeType"?:string,"uri":string}'),
        ("E", '{"_meta"?:MetaObject,"blob":base64,"mimeType"?:string,"uri":string}'),
    ),
    "BooleanSchema": (
        ("CDE", '{"default"?:boolean,"description"?:string,"title"?:string,"type":"boolean"}'),
    ),
    "CallToolRequestParams": (
        ("D", '{"_meta"?:{"progressToken"?:ProgressToken},"arguments"?:object,"name":string,"task"?:TaskMetadata}'),
        ("E", '{"_meta"?:RequestMetaObject,"arguments"?:object,"inputResponses"?:InputResponses,"name":string,"requestState"?:string}'),
    ),
    "CallToolResult": (
        ("A", '{"_meta"?:object,"content":[TextContent|ImageContent|EmbeddedResource],"isError"?:boolean}'),
        ("B", '{"_meta"?:object,"content":[TextContent|ImageContent|AudioContent|EmbeddedResource],"isError"?:boolean}'),
        ("CD", '{"_meta"?:object,"content":[ContentBlock],"isError"?:boolean,"structuredContent"?:object}'),
        ("E", '{"_meta"?:ResultMetaObject,"content":[ContentBlock],"isError"?:boolean,"structuredContent"?:any}'),
    ),
    "CancelTaskResult": (
        ("D", "Result&Task"),
    ),
    "CancelledNotificationParams": (
        ("D", '{"_meta"?:object,"reason"?:string,"requestId"?:RequestId}'),
        ("E", '{"_meta"?:NotificationMetaObject,"reason"?:string,"requestId":RequestId}'),
    ),
    "ClientCapabilities": (
        ("AB", '{"experimental"?:{*:object},"roots"?:{"listChanged"?:boolean},"sampling"?:object}'),
        ("C", '{"elicitation"?:object,"experimental"?:{*:object},"roots"?:{"listChanged"?:boolean},"sampling"?:object}'),
        ("D", '{"elicitation"?:{"form"?:object,"url"?:object},"experimental"?:{*:object},"roots"?:{"listChanged"?:boolean},"sampling"?:{"context"?:object,"tools"?:object},"tasks"?:{"cancel"?:object,"list"?:object,"requests"?:{"elicitation"?:{"create"?:object},"sampling"?:{"createMessage"?:object}}}}'),
        ("E", '{"elicitation"?:{"form"?:object,"url"?:object},"experimental"?:{*:object},"extensions"?:{*:object},"roots"?:object,"sampling"?:{"context"?:object,"tools"?:object}}'),
    ),
    "CompleteRequestParams": (
        ("D", '{"_meta"?:{"progressToken"?:ProgressToken},"argument":{"name":string,"value":string},"context"?:{"arguments"?:{*:string}},"ref":PromptReference|ResourceTemplateReference}'),
        ("E", '{"_meta"?:RequestMetaObject,"argument":{"name":string,"value":string},"context"?:{"arguments"?:{*:string}},"ref":PromptReference|ResourceTemplateReference}'),
    ),
    "CompleteResult": (
        ("ABCD", '{"_meta"?:object,"completion":{"hasMore"?:boolean,"total"?:number,"values":[string]}}'),
        ("E", '{"_meta"?:ResultMetaObject,"completion":{"hasMore"?:boolean,"total"?:number,"values":[string]}}'),
    ),
    "ContentBlock": (
        ("CDE", "TextContent|ImageContent|AudioContent|ResourceLink|EmbeddedResource"),
    ),
    "CreateMessageRequest": (
        ("E", '{"method":"sampling/createMessage","params":CreateMessageRequestParams}'),
    ),
    "CreateMessageRequestParams": (
        ("D", '{"_meta"?:{"progressToken"?:ProgressToken},"includeContext"?:"allServers"|"none"|"thisServer","maxTokens":integer,"messages":[SamplingMessage],"metadata"?:object,"modelPreferences"?:ModelPreferences,"stopSequences"?:[string],"systemPrompt"?:string,"task"?:TaskMetadata,"temperature"?:number,"toolChoice"?:ToolChoice,"tools"?:[Tool]}'),
        ("E", '{"includeContext"?:"allServers"|"none"|"thisServer","maxTokens":integer,"messages":[SamplingMessage],"metadata"?:object,"modelPreferences"?:ModelPreferences,"stopSequences"?:[string],"systemPrompt"?:string,"temperature"?:number,"toolChoice"?:ToolChoice,"tools"?:[Tool]}'),
    ),
    "CreateMessageResult": (
        ("A", '{"_meta"?:object,"content":TextContent|ImageContent,"model":string,"role":Role,"stopReason"?:string}'),
        ("BC", '{"_meta"?:object,"content":TextContent|ImageContent|AudioContent,"model":string,"role":Role,"stopReason"?:string}'),
        ("D", '{"_meta"?:object,"content":TextContent|ImageContent|AudioContent|ToolUseContent|ToolResultContent|[SamplingMessageContentBlock],"model":string,"role":Role,"stopReason"?:string}'),
        ("E", '{"_meta"?:MetaObject,"content":TextContent|ImageContent|AudioContent|ToolUseContent|ToolResultContent|[SamplingMessageContentBlock],"model":string,"role":Role,"stopReason"?:string}'),
    ),
    "CreateTaskResult": (
        ("D", '{"_meta"?:object,"task":Task}'),
        ("E", 'Result&{"taskId":string,"status":"working"|"input_required"|"completed"|"failed"|"cancelled","statusMessage"?:string,"createdAt":string,"lastUpdatedAt":string,"ttlMs":integer(-9007199254740991,9007199254740991)|null,"pollIntervalMs"?:number(-9007199254740991,9007199254740991)}'),
    ),
    "DiscoverResult": (
        ("E", '{"_meta"?:ResultMetaObject,"cacheScope":"private"|"public","capabilities":ServerCapabilities,"instructions"?:string,"supportedVersions":[string],"ttlMs":integer(0,)}'),
    ),
    "ElicitRequest": (
        ("E", '{"method":"elicitation/create","params":ElicitRequestParams}'),
    ),
    "ElicitRequestFormParams": (
        ("D", '{"_meta"?:{"progressToken"?:ProgressToken},"message":string,"mode"?:"form","requestedSchema":{"$schema"?:string,"properties":{*:PrimitiveSchemaDefinition},"required"?:[string],"type":"object"},"task"?:TaskMetadata}'),
        ("E", '{"message":string,"mode"?:"form","requestedSchema":{"$schema"?:string,"properties":{*:PrimitiveSchemaDefinition},"required"?:[string],"type":"object"}}'),
    ),
    "ElicitRequestParams": (
        ("D", "ElicitRequestURLParams|ElicitRequestFormParams"),
        ("E", "ElicitRequestFormParams|ElicitRequestURLParams"),
    ),
    "ElicitRequestURLParams": (
        ("D", '{"_meta"?:{"progressToken"?:ProgressToken},"elicitationId":string,"message":string,"mode":"url","task"?:TaskMetadata,"url":string}'),
        ("E", '{"message":string,"mode":"url","url":string}'),
    ),
    "ElicitResult": (
        ("C", '{"_meta"?:object,"action":"accept"|"cancel"|"decline","content"?:{*:string|number|boolean}}'),
        ("D", '{"_meta"?:object,"action":"accept"|"cancel"|"decline","content"?:{*:[string]|string|number|boolean}}'),
        ("E", '{"action":"accept"|"cancel"|"decline","content"?:{*:[string]|string|number|boolean}}'),
    ),
    "EmbeddedResource": (
        ("A", '{"annotations"?:{"audience"?:[Role],"priority"?:number(0,1)},"resource":TextResourceContents|BlobResourceContents,"type":"resource"}'),
        ("B", '{"annotations"?:Annotations,"resource":TextResourceContents|BlobResourceContents,"type":"resource"}'),
        ("CD", '{"_meta"?:object,"annotations"?:Annotations,"resource":TextResourceContents|BlobResourceContents,"type":"resource"}'),
        ("E", '{"_meta"?:MetaObject,"annotations"?:Annotations,"resource":TextResourceContents|BlobResourceContents,"type":"resource"}'),
    ),
    "EmptyResult": (
        ("ABCD", "Result"),
    ),
    "EnumSchema": (
        ("C", '{"description"?:string,"enum":[string],"enumNames"?:[string],"title"?:string,"type":"string"}'),
    ),
    "Error": (
        ("DE", '{"code":integer,"data"?:any,"message":string}'),
    ),
    "GetPromptRequestParams": (
        ("D", '{"_meta"?:{"progressToken"?:ProgressToken},"arguments"?:{*:string},"name":string}'),
        ("E", '{"_meta"?:RequestMetaObject,"arguments"?:{*:string},"inputResponses"?:InputResponses,"name":string,"requestState"?:string}'),
    ),
    "GetPromptResult": (
        ("ABCD", '{"_meta"?:object,"description"?:string,"messages":[PromptMessage]}'),
        ("E", '{"_meta"?:ResultMetaObject,"description"?:string,"messages":[PromptMessage]}'),
    ),
    "GetTaskPayloadResult": (
        ("D", '{"_meta"?:object}'),
    ),
    "GetTaskResult": (
        ("D", "Result&Task"),
        ("E", '{"taskId":string,"status":"working","statusMessage"?:string,"createdAt":string,"lastUpdatedAt":string,"ttlMs":integer(-9007199254740991,9007199254740991)|null,"pollIntervalMs"?:number(-9007199254740991,9007199254740991)}|{"taskId":string,"status":"input_required","statusMessage"?:string,"createdAt":string,"lastUpdatedAt":string,"ttlMs":integer(-9007199254740991,9007199254740991)|null,"pollIntervalMs"?:number(-9007199254740991,9007199254740991),"inputRequests":InputRequests}|{"taskId":string,"status":"completed","statusMessage"?:string,"createdAt":string,"lastUpdatedAt":string,"ttlMs":integer(-9007199254740991,9007199254740991)|null,"pollIntervalMs"?:number(-9007199254740991,9007199254740991),"result":object}|{"taskId":string,"status":"failed","statusMessage"?:string,"createdAt":string,"lastUpdatedAt":string,"ttlMs":integer(-9007199254740991,9007199254740991)|null,"pollIntervalMs"?:number(-9007199254740991,9007199254740991),"error":Error}|{"taskId":string,"status":"cancelled","statusMessage"?:string,"createdAt":string,"lastUpdatedAt":string,"ttlMs":integer(-9007199254740991,9007199254740991)|null,"pollIntervalMs"?:number(-9007199254740991,9007199254740991)}'),
    ),
    "Icon": (
        ("DE", '{"mimeType"?:string,"sizes"?:[string],"src":string,"theme"?:"dark"|"light"}'),
    ),
    "ImageContent": (
        ("A", '{"annotations"?:{"audience"?:[Role],"priority"?:number(0,1)},"data":base64,"mimeType":string,"type":"image"}'),
        ("B", '{"annotations"?:Annotations,"data":base64,"mimeType":string,"type":"image"}'),
        ("CD", '{"_meta"?:object,"annotations"?:Annotations,"data":base64,"mimeType":string,"type":"image"}'),
        ("E", '{"_meta"?:MetaObject,"annotations"?:Annotations,"data":base64,"mimeType":string,"type":"image"}'),
    ),
    "Implementation": (
        ("AB", '{"name":string,"version":string}'),
        ("C", '{"name":string,"title"?:string,"version":string}'),
        ("DE", '{"description"?:string,"icons"?:[Icon],"name":string,"title"?:string,"version":string,"websiteUrl"?:string}'),
    ),
    "InitializeRequestParams": (
        ("D", '{"_meta"?:{"progressToken"?:ProgressToken},"capabilities":ClientCapabilities,"clientInfo":Implementation,"protocolVersion":string}'),
    ),
    "InitializeResult": (
        ("ABCD", '{"_meta"?:object,"capabilities":ServerCapabilities,"instructions"?:string,"protocolVersion":string,"serverInfo":Implementation}'),
    ),
    "InputRequest": (
        ("E", "CreateMessageRequest|ListRootsRequest|ElicitRequest"),
    ),
    "InputRequests": (
        ("E", "{*:InputRequest}"),
    ),
    "InputRequiredResult": (
        ("E", '{"_meta"?:ResultMetaObject,"inputRequests"?:InputRequests,"requestState"?:string}'),
    ),
    "InputResponse": (
        ("E", "CreateMessageResult|ListRootsResult|ElicitResult"),
    ),
    "InputResponses": (
        ("E", "{*:InputResponse}"),
    ),
    "LegacyTitledEnumSchema": (
        ("DE", '{"default"?:string,"description"?:string,"enum":[string],"enumNames"?:[string],"title"?:string,"type":"string"}'),
    ),
    "ListPromptsResult": (
        ("ABCD", '{"_meta"?:object,"nextCursor"?:string,"prompts":[Prompt]}'),
        ("E", '{"_meta"?:ResultMetaObject,"cacheScope":"private"|"public","nextCursor"?:string,"prompts":[Prompt],"ttlMs":integer(0,)}'),
    ),
    "ListResourceTemplatesResult": (
        ("ABCD", '{"_meta"?:object,"nextCursor"?:string,"resourceTemplates":[ResourceTemplate]}'),
        ("E", '{"_meta"?:ResultMetaObject,"cacheScope":"private"|"public","nextCursor"?:string,"resourceTemplates":[ResourceTemplate],"ttlMs":integer(0,)}'),
    ),
    "ListResourcesResult": (
        ("ABCD", '{"_meta"?:object,"nextCursor"?:string,"resources":[Resource]}'),
        ("E", '{"_meta"?:ResultMetaObject,"cacheScope":"private"|"public","nextCursor"?:string,"resources":[Resource],"ttlMs":integer(0,)}'),
    ),
    "ListRootsRequest": (
        ("E", '{"method":"roots/list","params"?:{"_meta"?:MetaObject}}'),
    ),
    "ListRootsResult": (
        ("ABCD", '{"_meta"?:object,"roots":[Root]}'),
        ("E", '{"roots":[Root]}'),
    ),
    "ListTasksResult": (
        ("D", '{"_meta"?:object,"nextCursor"?:string,"tasks":[Task]}'),
    ),
    "ListToolsResult": (
        ("ABCD", '{"_meta"?:object,"nextCursor"?:string,"tools":[Tool]}'),
        ("E", '{"_meta"?:ResultMetaObject,"cacheScope":"private"|"public","nextCursor"?:string,"tools":[Tool],"ttlMs":integer(0,)}'),
    ),
    "LoggingLevel": (
        ("ABCDE", '"alert"|"critical"|"debug"|"emergency"|"error"|"info"|"notice"|"warning"'),
    ),
    "LoggingMessageNotificationParams": (
        ("D", '{"_meta"?:object,"data":any,"level":LoggingLevel,"logger"?:string}'),
        ("E", '{"_meta"?:NotificationMetaObject,"data":any,"level":LoggingLevel,"logger"?:string}'),
    ),
    "MetaObject": (
        ("E", "object"),
    ),
    "ModelHint": (
        ("ABCDE", '{"name"?:string}'),
    ),
    "ModelPreferences": (
        ("ABCDE", '{"costPriority"?:number(0,1),"hints"?:[ModelHint],"intelligencePriority"?:number(0,1),"speedPriority"?:number(0,1)}'),
    ),
    "NotificationMetaObject": (
        ("E", '{"io.modelcontextprotocol/subscriptionId"?:RequestId}'),
    ),
    "NotificationParams": (
        ("D", '{"_meta"?:object}'),
        ("E", '{"_meta"?:NotificationMetaObject}'),
    ),
    "NumberSchema": (
        ("C", '{"description"?:string,"maximum"?:number,"minimum"?:number,"title"?:string,"type":"integer"|"number"}'),
        ("DE", '{"default"?:number,"description"?:string,"maximum"?:number,"minimum"?:number,"title"?:string,"type":"integer"|"number"}'),
    ),
    "PaginatedRequestParams": (
        ("D", '{"_meta"?:{"progressToken"?:ProgressToken},"cursor"?:string}'),
        ("E", '{"_meta"?:RequestMetaObject,"cursor"?:string}'),
    ),
    "PrimitiveSchemaDefinition": (
        ("C", "StringSchema|NumberSchema|BooleanSchema|EnumSchema"),
        ("DE", "StringSchema|NumberSchema|BooleanSchema|UntitledSingleSelectEnumSchema|TitledSingleSelectEnumSchema|UntitledMultiSelectEnumSchema|TitledMultiSelectEnumSchema|LegacyTitledEnumSchema"),
    ),
    "ProgressNotificationParams": (
        ("D", '{"_meta"?:object,"message"?:string,"progress":number,"progressToken":ProgressToken,"total"?:number}'),
        ("E", '{"_meta"?:NotificationMetaObject,"message"?:string,"progress":number,"progressToken":ProgressToken,"total"?:number}'),
    ),
    "ProgressToken": (
        ("ABCDE", "string|integer"),
    ),
    "Prompt": (
        ("AB", '{"arguments"?:[PromptArgument],"description"?:string,"name":string}'),
        ("C", '{"_meta"?:object,"arguments"?:[PromptArgument],"description"?:string,"name":string,"title"?:string}'),
        ("D", '{"_meta"?:object,"arguments"?:[PromptArgument],"description"?:string,"icons"?:[Icon],"name":string,"title"?:string}'),
        ("E", '{"_meta"?:MetaObject,"arguments"?:[PromptArgument],"description"?:string,"icons"?:[Icon],"name":string,"title"?:string}'),
    ),
    "PromptArgument": (
        ("AB", '{"description"?:string,"name":string,"required"?:boolean}'),
        ("CDE", '{"description"?:string,"name":string,"required"?:boolean,"title"?:string}'),
    ),
    "PromptMessage": (
        ("A", '{"content":TextContent|ImageContent|EmbeddedResource,"role":Role}'),
        ("B", '{"content":TextContent|ImageContent|AudioContent|EmbeddedResource,"role":Role}'),
        ("CDE", '{"content":ContentBlock,"role":Role}'),
    ),
    "PromptReference": (
        ("AB", '{"name":string,"type":"ref/prompt"}'),
        ("CDE", '{"name":string,"title"?:string,"type":"ref/prompt"}'),
    ),
    "ReadResourceRequestParams": (
        ("D", '{"_meta"?:{"progressToken"?:ProgressToken},"uri":string}'),
        ("E", '{"_meta"?:RequestMetaObject,"inputResponses"?:InputResponses,"requestState"?:string,"uri":string}'),
    ),
    "ReadResourceResult": (
        ("ABCD", '{"_meta"?:object,"contents":[TextResourceContents|BlobResourceContents]}'),
        ("E", '{"_meta"?:ResultMetaObject,"cacheScope":"private"|"public","contents":[TextResourceContents|BlobResourceContents],"ttlMs":integer(0,)}'),
    ),
    "RequestId": (
        ("ABCDE", "string|integer"),
    ),
    "RequestMetaObject": (
        ("E", '{"io.modelcontextprotocol/clientCapabilities":ClientCapabilities,"io.modelcontextprotocol/clientInfo"?:Implementation,"io.modelcontextprotocol/logLevel"?:LoggingLevel,"io.modelcontextprotocol/protocolVersion":string,"progressToken"?:ProgressToken}'),
    ),
    "RequestParams": (
        ("D", '{"_meta"?:{"progressToken"?:ProgressToken}}'),
        ("E", '{"_meta"?:RequestMetaObject}'),
    ),
    "Resource": (
        ("A", '{"annotations"?:{"audience"?:[Role],"priority"?:number(0,1)},"description"?:string,"mimeType"?:string,"name":string,"size"?:number,"uri":string}'),
        ("B", '{"annotations"?:Annotations,"description"?:string,"mimeType"?:string,"name":string,"size"?:number,"uri":string}'),
        ("C", '{"_meta"?:object,"annotations"?:Annotations,"description"?:string,"mimeType"?:string,"name":string,"size"?:number,"title"?:string,"uri":string}'),
        ("D", '{"_meta"?:object,"annotations"?:Annotations,"description"?:string,"icons"?:[Icon],"mimeType"?:string,"name":string,"size"?:number,"title"?:string,"uri":string}'),
        ("E", '{"_meta"?:MetaObject,"annotations"?:Annotations,"description"?:string,"icons"?:[Icon],"mimeType"?:string,"name":string,"size"?:number,"title"?:string,"uri":string}'),
    ),
    "ResourceLink": (
        ("C", '{"_meta"?:object,"annotations"?:Annotations,"description"?:string,"mimeType"?:string,"name":string,"size"?:number,"title"?:string,"type":"resource_link","uri":string}'),
        ("D", '{"_meta"?:object,"annotations"?:Annotations,"description"?:string,"icons"?:[Icon],"mimeType"?:string,"name":string,"size"?:number,"title"?:string,"type":"resource_link","uri":string}'),
        ("E", '{"_meta"?:MetaObject,"annotations"?:Annotations,"description"?:string,"icons"?:[Icon],"mimeType"?:string,"name":string,"size"?:number,"title"?:string,"type":"resource_link","uri":string}'),
    ),
    "ResourceReference": (
        ("AB", '{"type":"ref/resource","uri":string}'),
    ),
    "ResourceTemplate": (
        ("A", '{"annotations"?:{"audience"?:[Role],"priority"?:number(0,1)},"description"?:string,"mimeType"?:string,"name":string,"uriTemplate":string}'),
        ("B", '{"annotations"?:Annotations,"description"?:string,"mimeType"?:string,"name":string,"uriTemplate":string}'),
        ("C", '{"_meta"?:object,"annotations"?:Annotations,"description"?:string,"mimeType"?:string,"name":string,"title"?:string,"uriTemplate":string}'),
        ("D", '{"_meta"?:object,"annotations"?:Annotations,"description"?:string,"icons"?:[Icon],"mimeType"?:string,"name":string,"title"?:string,"uriTemplate":string}'),
        ("E", '{"_meta"?:MetaObject,"annotations"?:Annotations,"description"?:string,"icons"?:[Icon],"mimeType"?:string,"name":string,"title"?:string,"uriTemplate":string}'),
    ),
    "ResourceTemplateReference": (
        ("CDE", '{"type":"ref/resource","uri":string}'),
    ),
    "ResourceUpdatedNotificationParams": (
        ("D", '{"_meta"?:object,"uri":string}'),
        ("E", '{"_meta"?:NotificationMetaObject,"uri":string}'),
    ),
    "Result": (
        ("ABCD", '{"_meta"?:object}'),
        ("E", '{"_meta"?:ResultMetaObject}'),
    ),
    "ResultMetaObject": (
        ("E", '{"io.modelcontextprotocol/serverInfo"?:Implementation}'),
    ),
    "Role": (
        ("ABCDE", '"assistant"|"user"'),
    ),
    "Root": (
        ("AB", '{"name"?:string,"uri":string}'),
        ("CD", '{"_meta"?:object,"name"?:string,"uri":string}'),
        ("E", '{"_meta"?:MetaObject,"name"?:string,"uri":string}'),
    ),
    "SamplingMessage": (
        ("A", '{"content":TextContent|ImageContent,"role":Role}'),
        ("BC", '{"content":TextContent|ImageContent|AudioContent,"role":Role}'),
        ("D", '{"_meta"?:object,"content":TextContent|ImageContent|AudioContent|ToolUseContent|ToolResultContent|[SamplingMessageContentBlock],"role":Role}'),
        ("E", '{"_meta"?:MetaObject,"content":TextContent|ImageContent|AudioContent|ToolUseContent|ToolResultContent|[SamplingMessageContentBlock],"role":Role}'),
    ),
    "SamplingMessageContentBlock": (
        ("DE", "TextContent|ImageContent|AudioContent|ToolUseContent|ToolResultContent"),
    ),
    "ServerCapabilities": (
        ("A", '{"experimental"?:{*:object},"logging"?:object,"prompts"?:{"listChanged"?:boolean},"resources"?:{"listChanged"?:boolean,"subscribe"?:boolean},"tools"?:{"listChanged"?:boolean}}'),
        ("BC", '{"completions"?:object,"experimental"?:{*:object},"logging"?:object,"prompts"?:{"listChanged"?:boolean},"resources"?:{"listChanged"?:boolean,"subscribe"?:boolean},"tools"?:{"listChanged"?:boolean}}'),
        ("D", '{"completions"?:object,"experimental"?:{*:object},"logging"?:object,"prompts"?:{"listChanged"?:boolean},"resources"?:{"listChanged"?:boolean,"subscribe"?:boolean},"tasks"?:{"cancel"?:object,"list"?:object,"requests"?:{"tools"?:{"call"?:object}}},"tools"?:{"listChanged"?:boolean}}'),
        ("E", '{"completions"?:object,"experimental"?:{*:object},"extensions"?:{*:object},"logging"?:object,"prompts"?:{"listChanged"?:boolean},"resources"?:{"listChanged"?:boolean,"subscribe"?:boolean},"tools"?:{"listChanged"?:boolean}}'),
    ),
    "SetLevelRequestParams": (
        ("D", '{"_meta"?:{"progressToken"?:ProgressToken},"level":LoggingLevel}'),
    ),
    "StringSchema": (
        ("C", '{"description"?:string,"format"?:"date"|"date-time"|"email"|"uri","maxLength"?:number,"minLength"?:number,"title"?:string,"type":"string"}'),
        ("DE", '{"default"?:string,"description"?:string,"format"?:"date"|"date-time"|"email"|"uri","maxLength"?:number,"minLength"?:number,"title"?:string,"type":"string"}'),
    ),
    "SubscribeRequestParams": (
        ("D", '{"_meta"?:{"progressToken"?:ProgressToken},"uri":string}'),
    ),
    "SubscriptionFilter": (
        ("E", '{"promptsListChanged"?:boolean,"resourceSubscriptions"?:[string],"resourcesListChanged"?:boolean,"toolsListChanged"?:boolean}'),
    ),
    "SubscriptionsAcknowledgedNotificationParams": (
        ("E", '{"_meta"?:NotificationMetaObject,"notifications":SubscriptionFilter}'),
    ),
    "SubscriptionsListenRequestParams": (
        ("E", '{"_meta"?:RequestMetaObject,"notifications":SubscriptionFilter}'),
    ),
    "SubscriptionsListenResult": (
        ("E", '{"_meta"?:SubscriptionsListenResultMetaObject}'),
    ),
    "SubscriptionsListenResultMetaObject": (
        ("E", '{"io.modelcontextprotocol/serverInfo"?:Implementation,"io.modelcontextprotocol/subscriptionId":RequestId}'),
    ),
    "Task": (
        ("D", '{"createdAt":string,"lastUpdatedAt":string,"pollInterval"?:number,"status":TaskStatus,"statusMessage"?:string,"taskId":string,"ttl":number|null}'),
    ),
    "TaskMetadata": (
        ("D", '{"ttl"?:number}'),
    ),
    "TaskStatus": (
        ("D", '"cancelled"|"completed"|"failed"|"input_required"|"working"'),
    ),
    "TaskStatusNotificationParams": (
        ("D", "NotificationParams&Task"),
    ),
    "TextContent": (
        ("A", '{"annotations"?:{"audience"?:[Role],"priority"?:number(0,1)},"text":string,"type":"text"}'),
        ("B", '{"annotations"?:Annotations,"text":string,"type":"text"}'),
        ("CD", '{"_meta"?:object,"annotations"?:Annotations,"text":string,"type":"text"}'),
        ("E", '{"_meta"?:MetaObject,"annotations"?:Annotations,"text":string,"type":"text"}'),
    ),
    "TextResourceContents": (
        ("AB", '{"mimeType"?:string,"text":string,"uri":string}'),
        ("CD", '{"_meta"?:object,"mimeType"?:string,"text":string,"uri":string}'),
        ("E", '{"_meta"?:MetaObject,"mimeType"?:string,"text":string,"uri":string}'),
    ),
    "TitledMultiSelectEnumSchema": (
        ("DE", '{"default"?:[string],"description"?:string,"items":{"anyOf":[{"const":string,"title":string}]},"maxItems"?:number,"minItems"?:number,"title"?:string,"type":"array"}'),
    ),
    "TitledSingleSelectEnumSchema": (
        ("DE", '{"default"?:string,"description"?:string,"oneOf":[{"const":string,"title":string}],"title"?:string,"type":"string"}'),
    ),
    "Tool": (
        ("A", '{"description"?:string,"inputSchema":{"properties"?:{*:object},"required"?:[string],"type":"object"},"name":string}'),
        ("B", '{"annotations"?:ToolAnnotations,"description"?:string,"inputSchema":{"properties"?:{*:object},"required"?:[string],"type":"object"},"name":string}'),
        ("C", '{"_meta"?:object,"annotations"?:ToolAnnotations,"description"?:string,"inputSchema":{"properties"?:{*:object},"required"?:[string],"type":"object"},"name":string,"outputSchema"?:{"properties"?:{*:object},"required"?:[string],"type":"object"},"title"?:string}'),
        ("D", '{"_meta"?:object,"annotations"?:ToolAnnotations,"description"?:string,"execution"?:ToolExecution,"icons"?:[Icon],"inputSchema":{"$schema"?:string,"properties"?:{*:object},"required"?:[string],"type":"object"},"name":string,"outputSchema"?:{"$schema"?:string,"properties"?:{*:object},"required"?:[string],"type":"object"},"title"?:string}'),
        ("E", '{"_meta"?:MetaObject,"annotations"?:ToolAnnotations,"description"?:string,"icons"?:[Icon],"inputSchema":{"$schema"?:string,"type":"object"},"name":string,"outputSchema"?:{"$schema"?:string},"title"?:string}'),
    ),
    "ToolAnnotations": (
        ("BCDE", '{"destructiveHint"?:boolean,"idempotentHint"?:boolean,"openWorldHint"?:boolean,"readOnlyHint"?:boolean,"title"?:string}'),
    ),
    "ToolChoice": (
        ("DE", '{"mode"?:"auto"|"none"|"required"}'),
    ),
    "ToolExecution": (
        ("D", '{"taskSupport"?:"forbidden"|"optional"|"required"}'),
    ),
    "ToolResultContent": (
        ("D", '{"_meta"?:object,"content":[ContentBlock],"isError"?:boolean,"structuredContent"?:object,"toolUseId":string,"type":"tool_result"}'),
        ("E", '{"_meta"?:MetaObject,"content":[ContentBlock],"isError"?:boolean,"structuredContent"?:any,"toolUseId":string,"type":"tool_result"}'),
    ),
    "ToolUseContent": (
        ("D", '{"_meta"?:object,"id":string,"input":object,"name":string,"type":"tool_use"}'),
        ("E", '{"_meta"?:MetaObject,"id":string,"input":object,"name":string,"type":"tool_use"}'),
    ),
    "UnsubscribeRequestParams": (
        ("D", '{"_meta"?:{"progressToken"?:ProgressToken},"uri":string}'),
    ),
    "UntitledMultiSelectEnumSchema": (
        ("DE", '{"default"?:[string],"description"?:string,"items":{"enum":[string],"type":"string"},"maxItems"?:number,"minItems"?:number,"title"?:string,"type":"array"}'),
    ),
    "UntitledSingleSelectEnumSchema": (
        ("DE", '{"default"?:string,"description"?:string,"enum":[string],"title"?:string,"type":"string"}'),
    ),
}
# fmt: on
